"""Archiving and removing tasks: which ones, and what of them remains."""
