"""Linux tc, read and written."""
