"""The figures, claims and Atari table of the paper as data, and studies of related methods."""
