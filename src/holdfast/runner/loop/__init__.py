"""What the loop waits for and watches besides the task: signals, the keeper, the packet itself."""
