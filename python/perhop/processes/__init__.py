"""The process: Ctrl-C and SIGTERM, forks, memory, and a server for pages on this machine."""
