"""Run one task: gather facts, plan a step, perform it, wait. A restarted runner does the same."""
