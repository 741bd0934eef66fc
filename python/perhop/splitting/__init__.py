"""Rare events by splitting: losses of one packet in a million, and the tails of waits."""
