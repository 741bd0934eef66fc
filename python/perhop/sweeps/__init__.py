"""Sweeps: a scenario over many settings and seeds, in a store that loses no finished run; tuning on top."""
