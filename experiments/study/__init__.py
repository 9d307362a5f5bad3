"""Define studies, which compare assignors with the optimum: cases, evaluation and tables."""
