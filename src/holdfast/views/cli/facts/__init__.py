"""What commands print about a home or a task: facts as data, and as rows of text."""
