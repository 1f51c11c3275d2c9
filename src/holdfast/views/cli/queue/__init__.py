"""What `holdfast queue` does, action by action; each is given the home, its queue and the values of the command line."""
