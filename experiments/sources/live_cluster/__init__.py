"""Read groups of a running cluster through its admin interface."""
