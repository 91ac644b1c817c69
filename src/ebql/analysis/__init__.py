"""Runs read back: learning curves, scores, statistics, comparisons and findings."""
