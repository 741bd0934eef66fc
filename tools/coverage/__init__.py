"""How often 95 % intervals contain what they are for: tried by repetition over kinds of scenario."""
