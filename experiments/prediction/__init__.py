"""Prediction of events of a group: configurations, events, and distributions over samples."""
