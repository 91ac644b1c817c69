"""Figures 1 and 2: how to split samples between choosing and judging."""
