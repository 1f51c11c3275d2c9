"""Whether an agent is alive or stuck: process death as the kernel reports it, signs of progress, verdicts."""
