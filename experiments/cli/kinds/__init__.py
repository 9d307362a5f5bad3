"""Results of commands for share groups, Streams applications and Connect clusters."""
