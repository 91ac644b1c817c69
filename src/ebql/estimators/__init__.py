"""The statistics: how to estimate the largest of several means."""
