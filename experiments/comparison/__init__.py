"""Compare assignments of assignors with the optimum."""
