"""Current state and forecasts of share groups, Streams applications and Connect clusters."""
