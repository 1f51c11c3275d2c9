"""One stage: prompt, launch, chores, outputs, markers."""
