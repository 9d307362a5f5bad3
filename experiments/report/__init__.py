"""A study's tables, told as a page: numbers, figures and the worst groups drawn."""
