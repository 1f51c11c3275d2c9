"""Adapter for Codex."""
