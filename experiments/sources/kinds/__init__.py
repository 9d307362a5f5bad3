"""Import share groups, Streams applications and Connect clusters as documents of their kind."""
