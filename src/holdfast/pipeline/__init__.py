"""Pipelines: from a written packet to stages that a runner can drive."""
