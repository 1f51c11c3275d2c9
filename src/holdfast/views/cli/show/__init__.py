"""Printing: text that fits the terminal, tables, and a task's state as text."""
