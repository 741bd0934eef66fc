"""Runs: a scenario and seeds in, a result of data frames, pages and files out."""
