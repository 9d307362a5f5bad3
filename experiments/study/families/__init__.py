"""Families of groups for studies. A family generates one group per seed."""
