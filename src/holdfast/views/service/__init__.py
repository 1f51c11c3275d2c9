"""The keeper as a service: a systemd user unit, or a launchd agent."""
