"""holdfast runs coding agents on long tasks and does not let go."""

__version__ = "0.1.0"
