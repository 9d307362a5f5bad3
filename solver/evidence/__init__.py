"""Search for evidence in certificates: prices that prove bounds and conflicts."""
