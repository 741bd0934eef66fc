"""Files: the one way to change them, inputs, outputs, and directories that are replaced as a whole."""
