"""What monitoring tools and REST proxies say of groups, as the tables of a capture."""

from experiments.sources.tools.dispatch import read_tool
from experiments.sources.tools.found import Found

__all__ = ["Found", "read_tool"]
