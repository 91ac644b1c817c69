"""The paper's figures, claims and Atari table as data, and the maps of its relatives."""
