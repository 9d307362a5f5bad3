"""Studies: configuration, cases, evaluation, tables and statistics."""
