"""Environments stepped side by side, as `Lanes`: one environment or many may lie behind them."""
