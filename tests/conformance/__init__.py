"""The real CLIs, run by holdfast against model servers of our own, in a namespace that has loopback only."""
