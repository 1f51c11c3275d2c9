"""Schemas of what commands print with --json."""

from __future__ import annotations

from contracts.command_output import home, lists, pipelines, task

SCHEMAS = home.SCHEMAS | pipelines.SCHEMAS | lists.SCHEMAS | task.SCHEMAS
