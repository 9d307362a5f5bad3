"""Find optimal assignments with the CP-SAT solver of OR-Tools."""
