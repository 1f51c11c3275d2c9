"""Measurements, each next to a baseline that is built in the same run. `make bench`, or `python -m benchmarks`."""
