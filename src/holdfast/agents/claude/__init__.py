"""Adapter for Claude Code."""
