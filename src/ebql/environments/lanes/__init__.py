"""Lanes: any number of environments that an agent steps together."""
