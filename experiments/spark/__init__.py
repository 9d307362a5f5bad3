"""Run studies, counterexample searches and history analyses as Spark jobs."""
