"""Films of agents in their environments."""
