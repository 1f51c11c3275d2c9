"""Adapter for OpenCode."""
