"""Blocks in Python: roles, parameters, and how a scenario finds them; the catalogue of all blocks."""
