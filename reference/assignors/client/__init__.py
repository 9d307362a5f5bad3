"""Ports of the Java client's assignors."""
