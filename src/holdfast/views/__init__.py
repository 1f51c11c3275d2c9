"""THE DOORS: command line and other views. They read files and drop requests; they never write a task's state."""
