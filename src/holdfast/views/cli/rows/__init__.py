"""Facts about a home or a task as rows of text, as commands print them."""
