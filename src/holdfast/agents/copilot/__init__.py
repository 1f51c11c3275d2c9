"""Adapter for GitHub Copilot CLI."""
