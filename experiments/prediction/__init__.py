"""Predict the cost of events in a group, by simulation."""
