"""Adapter for the GitHub Copilot CLI."""
