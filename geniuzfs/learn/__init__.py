"""From bytes to what recall can find: passages, and which files have none."""
