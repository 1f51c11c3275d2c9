"""IS IT ALIVE, IS IT STUCK: process death as the kernel reports it, signs of progress, verdicts."""
