"""Kept results: what finished runs have measured, in a few small files that need no run folders."""
