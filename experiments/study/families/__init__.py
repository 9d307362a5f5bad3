"""Families of groups for studies. Each family generates one group per seed."""
