"""Parse JSON and YAML files. Errors name the file and the line."""
