"""VyOS, read."""
