"""Results of simulations: rebalances, ownership intervals and costs."""
