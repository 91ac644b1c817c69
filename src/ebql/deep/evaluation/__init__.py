"""Episodes played without learning: scores, the measured bias, and films."""
