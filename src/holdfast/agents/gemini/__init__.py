"""Adapter for Gemini CLI."""
