"""What exists for speed alone. Each part computes what a plain one would; tests hold both equal."""
