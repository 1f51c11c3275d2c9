"""IS IT ALIVE, IS IT STUCK: death by the kernel's word, progress by evidence, verdicts as pure functions."""
