"""Data types of the ports and the solver: groups, assignments, ownership and metrics."""
