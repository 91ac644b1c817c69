"""The paper's relatives on the chains: maps, the adaptive split, exploration."""
