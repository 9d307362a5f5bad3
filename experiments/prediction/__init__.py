"""Predict the effect of events on a group, as distributions over simulated samples."""
