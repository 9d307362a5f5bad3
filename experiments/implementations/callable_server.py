"""Run a Python function on group documents from standard input, in its own process.

Command: ``python -m kassay.experiments.implementations.callable_server MODULE:FUNCTION``. In a
process of its own, the function cannot disturb kassay.
"""

import importlib
import importlib.util
import json
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from pathlib import Path
from types import ModuleType

from kassay.reference.documents.json_codec import assignment_document, parse_group
from kassay.reference.model.assignment import Assignment, LivelockError
from kassay.reference.model.group import Group


def load_callable(name: str) -> Callable[[Group], object]:
    """Import ``module:function`` or ``file.py:function``, or raise TypeError."""
    module_name, _, path = name.rpartition(":")
    target: object = _import_module(module_name)
    for attribute in path.split("."):
        target = getattr(target, attribute)
    if not callable(target):
        raise TypeError(f"{name!r} must be a function, got {type(target).__name__}")
    return target


def answer(function: Callable[[Group], object], line: str) -> dict[str, object]:
    """Run a function on a group document, and return the assignment or the error as JSON."""
    try:
        group = parse_group(json.loads(line))
        start = time.perf_counter()
        with redirect_stdout(sys.stderr):
            result = function(group)
        seconds = time.perf_counter() - start
        if not isinstance(result, Mapping):
            return {"error": f"the function must return a mapping, got {type(result).__name__}"}
        if not isinstance(result, Assignment):
            result = Assignment({member: list(pairs) for member, pairs in result.items()})
        return {"assignment": assignment_document(result), "seconds": seconds}
    except LivelockError as livelock:
        return {"assignment": None, "terminated": False, "reason": str(livelock)}
    except Exception as error:  # noqa: BLE001 - any exception is the assignor's answer
        return {"error": f"{type(error).__name__}: {error}"}


def _import_module(name: str) -> ModuleType:
    sys.path.insert(0, str(Path.cwd()))
    if not name.endswith(".py"):
        return importlib.import_module(name)
    sys.path.insert(0, str(Path(name).resolve().parent))
    spec = importlib.util.spec_from_file_location(Path(name).stem, name)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot import {name!r}: give the path of a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    with redirect_stdout(sys.stderr):
        assignor = load_callable(sys.argv[1])
    for group_line in sys.stdin:
        print(json.dumps(answer(assignor, group_line)), flush=True)  # noqa: T201
