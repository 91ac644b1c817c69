"""MDPs with exactly known values: the paper's chains, toy text environments and probes."""
