"""MDPs whose values are known exactly, and the worlds built on them."""
