"""Q-networks of K members: encoders, members' heads, and what their outputs mean."""
