"""The runs of a study that keep tables instead of networks."""
