"""Training: the loop of steps and updates, its schedules, and what it reports."""
