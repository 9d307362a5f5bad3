"""Create figures, and pages from templates, for plans, frontiers and reports."""
