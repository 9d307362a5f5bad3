"""Compare Kafka's partition assignors with a proven optimum.

The documented interface is listed in ``__init__.pyi``, which type checkers read. Each name is
imported on first use, because OR-Tools and pandas take seconds to load.

Examples
--------
>>> import kassay
>>> group = kassay.Group(
...     topics=(kassay.Topic(name="t0", partitions=1), kassay.Topic(name="t1", partitions=2)),
...     members=(
...         kassay.Member(id="c0", subscription=("t1",)),
...         kassay.Member(id="c1", subscription=("t0", "t1")),
...         kassay.Member(id="c2", subscription=("t0",)),
...     ),
... )
>>> kassay.assign(group, "sticky").counts()
{'c0': 2, 'c1': 1, 'c2': 0}
>>> kassay.solve(group).assignment.counts()
{'c0': 1, 'c1': 1, 'c2': 1}
"""

import ast
from importlib import import_module
from importlib.util import find_spec
from pkgutil import get_data
from typing import Any

_MODULES = {
    name.name: str(statement.module)
    for statement in ast.parse(get_data(__name__, "__init__.pyi") or b"").body
    if isinstance(statement, ast.ImportFrom)
    for name in statement.names
}
"""Module of each name."""
_EXTRAS = {
    "plot": ("plots", "matplotlib"),
    "read": ("tables", "pandas", "pyarrow"),
    "to_frame": ("plots", "pandas"),
}
"""Extra that each name needs, and the packages that it uses."""

__all__ = sorted(_MODULES)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415 - loads for some milliseconds

        return version(__name__)
    if name not in _MODULES:
        raise AttributeError(f"module 'kassay' has no attribute {name!r}")
    extra, *packages = _EXTRAS.get(name, ("",))
    for package in packages:
        if find_spec(package) is None:
            text = f"kassay.{name} needs {package}, which is not installed; "
            raise ModuleNotFoundError(f"{text}run: pip install 'kassay[{extra}]'", name=package)
    value = globals()[name] = getattr(import_module(_MODULES[name]), name)
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__", *(name for name in globals() if name.startswith("__"))]
