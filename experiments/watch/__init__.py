"""Watch the consumer groups of a cluster: history in SQLite, metrics and pages."""
