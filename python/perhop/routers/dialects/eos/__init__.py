"""Arista EOS, read."""
