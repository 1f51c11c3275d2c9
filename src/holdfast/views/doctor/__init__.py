"""Checks of the machine and the home. Each is ok, warn or fail, with a fix. Nothing is changed."""
