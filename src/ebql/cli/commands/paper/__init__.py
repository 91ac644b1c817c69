"""The commands of the paper: its figures, claims, Atari table and relatives."""
