"""Atari games: their names and protocols, the lanes that agents play in, and one game to draw."""
