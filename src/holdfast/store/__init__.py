"""Bytes on disk: atomic writes, the journal, locks, and the paths of all files."""
