"""Adapter for pi."""
