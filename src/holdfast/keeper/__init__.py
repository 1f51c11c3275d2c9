"""The keeper, one per home: starts and restarts runners.

It keeps no state of its own; everything is read from files.
"""
