"""ONE TASK'S LIFE: look at the facts, decide, act one step, wait. A runner that starts anew does just the same."""
