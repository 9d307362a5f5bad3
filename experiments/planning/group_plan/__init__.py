"""Plan of one group: planned assignment, alternatives and actions."""
