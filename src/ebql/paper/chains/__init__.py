"""Figures 3 and 5: tables on the chains, in every regime."""
