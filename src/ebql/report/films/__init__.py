"""Films of an agent at play."""
