"""What a terminal shows of a run: the console that everything is printed to, and the progress line."""
