"""MikroTik RouterOS, read."""
