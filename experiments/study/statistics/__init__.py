"""Statistics of a study, from its tables alone."""
