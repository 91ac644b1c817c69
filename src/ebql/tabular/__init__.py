"""The tables: Q-learning, double Q-learning and ensemble bootstrapped Q-learning."""
