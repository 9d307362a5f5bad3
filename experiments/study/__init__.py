"""Studies, which compare assignors with the optimum: cases, evaluation and statistics."""
