"""Serves a Python callable as an assignor: group documents in, assignment documents out.

Started as ``python -m kassay.experiments.implementations.callable_server MODULE:FUNCTION``, so
that what the callable does to its process, it does to its own.
"""

import importlib
import importlib.util
import json
import sys
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from pathlib import Path
from types import ModuleType

from kassay.reference.documents.json_codec import assignment_document, parse_group
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.assignor_result import LivelockError
from kassay.reference.model.group import Group


def load_callable(name: str) -> Callable[[Group], object]:
    """Import ``module:function`` or ``file.py:function``.

    Modules are looked for in the working directory, then where Python looks.

    Raises
    ------
    ImportError
        If there is no such module.
    AttributeError
        If it has no such function.
    TypeError
        If that is not callable.

    Examples
    --------
    >>> load_callable("kassay.reference.assignors.client.range:assign").__name__
    'assign'
    """
    module_name, _, path = name.rpartition(":")
    found: object = _module(module_name)
    for part in path.split("."):
        found = getattr(found, part)
    if not callable(found):
        raise TypeError(f"{name!r} is not callable")
    return found


def answer(function: Callable[[Group], object], line: str) -> dict[str, object]:
    """Answer one group document: an assignment, or why there is none.

    Examples
    --------
    >>> answer(lambda group: {"a": [("t", 0)]}, '{"topics": {"t": 1}, "members": []}')
    {'assignment': {'a': [['t', 0]]}}
    """
    try:
        group = parse_group(json.loads(line))
        with redirect_stdout(sys.stderr):
            found = function(group)
        if not isinstance(found, Mapping):
            return {"error": f"returned {type(found).__name__}, not a mapping of members"}
        if not isinstance(found, Assignment):
            found = Assignment({member: list(pairs) for member, pairs in found.items()})
        return {"assignment": assignment_document(found)}
    except LivelockError as livelock:
        return {"assignment": None, "terminated": False, "reason": str(livelock)}
    except Exception as error:  # noqa: BLE001 - whatever it raises is its answer
        return {"error": f"{type(error).__name__}: {error}"}


def serve(name: str) -> None:
    """Answer standard input line by line."""
    with redirect_stdout(sys.stderr):
        function = load_callable(name)
    for line in sys.stdin:
        print(json.dumps(answer(function, line)), flush=True)  # noqa: T201


def _module(name: str) -> ModuleType:
    sys.path.insert(0, str(Path.cwd()))
    if not name.endswith(".py"):
        return importlib.import_module(name)
    sys.path.insert(0, str(Path(name).resolve().parent))
    spec = importlib.util.spec_from_file_location(Path(name).stem, name)
    if spec is None or spec.loader is None:
        raise ImportError(f"no Python in {name!r}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    serve(sys.argv[1])
