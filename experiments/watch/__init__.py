"""Watch the consumer groups of a cluster, with a history, metrics and pages."""
