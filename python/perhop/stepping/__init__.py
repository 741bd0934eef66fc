"""Runs that are stepped through, and single queues driven by hand."""
