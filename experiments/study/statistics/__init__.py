"""Statistics of the tables of a study."""
