"""One stage: prompt, chores, outputs, markers."""
