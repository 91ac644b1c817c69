"""Agents for other people and programs: the Hugging Face Hub."""
