"""Telling people: rules, the outbox, and one small function per way of telling."""
