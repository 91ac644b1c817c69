"""Search for good options with Optuna: the search space, the trials, and the workers that run them."""
