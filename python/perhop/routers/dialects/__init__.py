"""The dialects, each in a folder of its own."""
