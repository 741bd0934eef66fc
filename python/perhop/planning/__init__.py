"""`perhop plan`: which promises a configuration keeps, how much growth it bears, and what would be better."""
