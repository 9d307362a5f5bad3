"""Comparison of Kafka's assignors with the optimum: sources, studies, plans and reports."""
