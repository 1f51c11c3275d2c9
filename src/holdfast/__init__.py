"""holdfast runs coding agents on long tasks and keeps them going."""

__version__ = "0.1.0"
