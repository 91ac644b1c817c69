"""Studies: one TOML file that describes many runs, and the runners that perform them."""
