"""The demo: run a task, kill its agent, runner and keeper, and measure the recovery."""
