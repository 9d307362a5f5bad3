"""Views of groups and results for notebooks: tables, graphs, figures, captures."""
