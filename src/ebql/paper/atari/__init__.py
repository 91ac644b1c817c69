"""Table 1 and figure 6: eleven Atari games."""
