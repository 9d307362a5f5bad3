"""Number of members: members needed, loss of a member, resized groups."""
