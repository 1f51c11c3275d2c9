"""Views, such as the command line. They read files and send requests, and never write a task's state."""
