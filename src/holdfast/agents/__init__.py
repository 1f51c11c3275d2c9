"""Adapters: how to start, resume, read and judge each agent.

One package or module per agent; none imports another.
"""
