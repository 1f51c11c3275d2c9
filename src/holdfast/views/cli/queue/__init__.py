"""The actions of `holdfast queue`; each takes the home, its queue and the values of the command line."""
