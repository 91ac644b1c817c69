"""Atari games: names and protocols, lanes for agents, and a single game that can be rendered."""
