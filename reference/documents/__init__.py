"""JSON and YAML input: parsing with the location of each error."""
