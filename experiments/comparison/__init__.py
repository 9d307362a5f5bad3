"""Compare assignments with the optimum: in total, per level, and with a front."""
