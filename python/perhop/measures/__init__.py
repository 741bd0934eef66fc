"""Measures: what is measured of a run, declared once; and formulas of fairness over a run's flows."""
