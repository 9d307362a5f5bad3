"""Watch the consumer groups of a cluster: record their history, serve metrics and pages."""
