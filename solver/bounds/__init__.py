"""Lower bounds on the levels of the objective, computed without search."""
