"""Kinds of groups other than consumer groups: share, Streams and Connect."""
