"""The keeper as a unit of the machine's own supervisor: systemd for a user, or launchd."""
