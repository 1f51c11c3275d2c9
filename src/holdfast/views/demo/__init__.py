"""The demo: a task whose agent, runner and keeper are really killed, and what becomes of it."""
