"""The coverage of 95 % intervals, measured by repetition over kinds of scenario."""
