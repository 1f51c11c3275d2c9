"""Pipelines: a written packet becomes stages, each stage gets a prompt, and its results are handed on."""
