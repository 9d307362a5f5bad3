"""Scripts of simulations, and their parser."""
