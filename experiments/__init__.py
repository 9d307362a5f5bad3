"""Compare Kafka's assignors with the optimum: read groups, plan, predict, study, report."""
