"""Groups of a running cluster, read through its admin interface."""
