"""MAY WE GO ON: what stands between a stage's end and its done marker. Gates look at the world, not at claims."""
