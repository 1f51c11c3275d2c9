"""The real CLIs, run by holdfast with our model servers, in a network namespace that has only loopback."""
