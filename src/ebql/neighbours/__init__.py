"""Agents and environments of other libraries, as the measurement of the bias takes them."""
