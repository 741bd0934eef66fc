"""Everything a reader sees: text tables, plots, the report page, data files."""
