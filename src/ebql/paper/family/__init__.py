"""Related methods on the chains: regime map, bias, the adaptive split, exploration."""
