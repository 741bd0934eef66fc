"""Bounds: what no run of a scenario can exceed, derived from the scenario alone by network calculus."""
