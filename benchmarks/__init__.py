"""Benchmarks that compare run times of implementations; `make bench` runs them."""
