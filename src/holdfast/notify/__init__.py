"""Notifications: rules, the outbox, and one function per notifier."""
