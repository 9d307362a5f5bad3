"""Statistics computed from the tables of a study."""
