"""Adapter for the Gemini CLI."""
