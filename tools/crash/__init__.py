"""The crash campaign: kills, power loss, I/O errors, damaged files and hostile input, as counted cases."""
