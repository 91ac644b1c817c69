"""Figures 1 and 2: how to split samples between selecting an arm and evaluating it."""
