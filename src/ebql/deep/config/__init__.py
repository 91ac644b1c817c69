"""The options of every agent, their checks, and the presets."""
