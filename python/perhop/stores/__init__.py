"""Stores of finished runs, which outlive any failure."""
