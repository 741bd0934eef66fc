"""The documentation site: pages from `docs/` and from the program, pictures from runs (`make site`)."""
