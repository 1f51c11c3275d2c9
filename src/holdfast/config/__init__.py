"""Settings of the user and of the project, in TOML."""
