"""What the tests share: waiting, processes, external tools, the list of requirements."""
