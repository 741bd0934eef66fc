"""The process: Ctrl-C and SIGTERM, forks, memory, and modules that are loaded when they are first used."""
