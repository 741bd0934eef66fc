"""perhop-router, written."""
