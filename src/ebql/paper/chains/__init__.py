"""Figures 3 and 5 and the regime map: tabular agents on the chains, in every regime."""
