"""Run studies, searches for counterexamples, and histories as Spark jobs."""
