"""Distribution of studies, hunts and histories over the tasks of Spark."""
