"""Studies that compare assignors with the optimum: cases, evaluation and tables."""
