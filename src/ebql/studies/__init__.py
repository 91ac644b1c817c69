"""Studies: one TOML file that stands for many runs, and the runners that perform them."""
