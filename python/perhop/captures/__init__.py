"""Captures of packets, replayed into a meter, a queue or a link."""
