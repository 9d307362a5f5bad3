"""Emulation of Java: string hashes and the iteration order of hash maps."""
