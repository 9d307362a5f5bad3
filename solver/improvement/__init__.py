"""Residual network and improving chains of transfers."""
