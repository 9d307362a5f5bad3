"""Minimise the maximum load of members with equal subscriptions (P||Cmax)."""
