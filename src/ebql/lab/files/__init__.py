"""Run folders read while they grow."""
