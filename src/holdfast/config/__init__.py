"""WHAT PEOPLE SET: settings in TOML, of the user and of the project."""
