"""Replay memory: rings of transitions, frames kept once, n-step sums, and which rows are drawn."""
