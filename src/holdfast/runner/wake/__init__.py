"""What the runner's loop waits for and watches: signals, the bell, the keeper, the packet's directory."""
