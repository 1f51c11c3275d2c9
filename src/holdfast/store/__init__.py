"""BYTES ON DISK: atomic writes, the journal, locks, and where each file lies."""
