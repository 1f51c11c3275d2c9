"""`make screenshots`: the pictures of the README, from a real home with scripted tasks."""
