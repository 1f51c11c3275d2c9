"""The planner: pure functions from the task and the facts to the next step."""
