"""Every world behind one interface."""
