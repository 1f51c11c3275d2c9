"""ONE PER HOME: starts and restarts runners. It owns no task: whatever it knows, it reads from the packets."""
