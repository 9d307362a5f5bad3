"""Process each group of a source, and write the results as JSON, tables and files."""
