"""Forms of text that several dialects have: command lines, statements in braces, JSON."""
