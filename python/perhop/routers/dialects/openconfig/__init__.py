"""OpenConfig QoS, read."""
