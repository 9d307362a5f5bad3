"""Scripts that write recorded data and parts of the documentation."""
