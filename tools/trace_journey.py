"""Count the files, functions and changes of package of one run of kassay.

Run ``python tools/trace_journey.py solve group.json --certificate`` to trace a command with its
arguments, or ``python tools/trace_journey.py --case mixed-churn/1 sticky`` to trace
`evaluate_case` for one case of a study with the named assignors. ``--list`` before the other
arguments also prints the functions in the order of the report.

The run is traced from its first call to its end, in all threads. Counted are:

functions
    Functions and methods of the repository that are called at least once. Lambdas,
    comprehensions, generated methods of dataclasses, and calls during the import of a module are
    not counted.
files
    Files of these functions.
packages
    Folders of these files. Modules directly in ``solver`` are one package.

Returns
-------
    The files are ordered by the first call of one of their functions, as in a written list of the
    places that a reader visits. A return is a change from one package to another package that
    occurs earlier in this order.
returns by function
    The same for functions, ordered by their first call. Most of these returns are calls of
    properties and short functions of files that are already known.
"""

import inspect
import sys
import threading
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple, Self

import kassay

_ROOT = Path(kassay.__file__).resolve().parents[1]
_FUNCTION_FLAGS = inspect.CO_OPTIMIZED | inspect.CO_NEWLOCALS
_IMPORT_SYSTEM = "<frozen importlib._bootstrap>"


class CalledFunction(NamedTuple):
    """Function of the repository that a run called."""

    file: str
    name: str

    @property
    def package(self) -> str:
        """Folder of the function's file, relative to the repository."""
        return str(Path(self.file).parent)


class CallTrace:
    """Functions of the repository in the order of their first call."""

    def __init__(self) -> None:
        self.functions: list[CalledFunction] = []
        self._seen: set[CodeType] = set()

    def __enter__(self) -> Self:
        threading.setprofile(self._record)
        sys.setprofile(self._record)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)

    def _record(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event != "call" or code in self._seen:
            return
        path = Path(code.co_filename).resolve()
        is_function = code.co_flags & _FUNCTION_FLAGS and not code.co_name.startswith("<")
        is_file = path.is_relative_to(_ROOT) and not code.co_filename.startswith("<")
        is_file = is_file and code.co_filename != __file__
        if not is_function or not is_file or ".venv" in path.parts:
            self._seen.add(code)
        elif not _is_importing(frame):
            self._seen.add(code)
            name = str(path.relative_to(_ROOT))
            self.functions.append(CalledFunction(name, code.co_qualname))


def _is_importing(frame: FrameType) -> bool:
    """Return whether a call belongs to the import of a module."""
    caller: FrameType | None = frame
    while caller is not None:
        if caller.f_code.co_filename == _IMPORT_SYSTEM:
            return True
        caller = caller.f_back
    return False


def count_returns(packages: list[str]) -> int:
    """Count the changes to a package that occurs earlier in a list of packages.

    Examples
    --------
    >>> count_returns(["cli", "solver", "solver", "cli", "report", "solver"])
    2
    """
    changes = [package for package, _ in groupby(packages)]
    return len(changes) - len(set(changes))


def _command(arguments: list[str]) -> Callable[[], object]:
    from kassay.experiments.cli import main  # noqa: PLC0415

    sys.argv = ["kassay", *arguments]
    return main


def _study_case(name: str, *assignors: str) -> Callable[[], object]:
    from kassay.experiments.study.cases import Case  # noqa: PLC0415
    from kassay.experiments.study.evaluate_case import evaluate_case  # noqa: PLC0415

    family, seed = name.split("/")
    case = Case(family=family, seed=int(seed), assignors=assignors or ("sticky",))
    return lambda: evaluate_case(case)


def main() -> None:
    """Trace the run that the command line describes, and print the counts to standard error."""
    arguments = sys.argv[1:]
    is_listed = arguments[:1] == ["--list"]
    arguments = arguments[is_listed:]
    run = _study_case(*arguments[1:]) if arguments[:1] == ["--case"] else _command(arguments)
    with CallTrace() as trace:
        try:
            run()
        except SystemExit as ending:
            if ending.code:
                raise
    packages = [function.package for function in trace.functions]
    first_calls = {function.file: function for function in reversed(trace.functions)}
    files = [one for one in trace.functions if first_calls[one.file] is one]
    if is_listed:
        for package, functions in groupby(trace.functions, lambda function: function.package):
            names = (f"{Path(one.file).name}:{one.name}" for one in functions)
            sys.stderr.write(f"{package}: {', '.join(names)}\n")
    sys.stderr.write(
        f"{len(files)} files, {len(trace.functions)} functions, {len(set(packages))} packages, "
        f"{count_returns([file.package for file in files])} returns, "
        f"{count_returns(packages)} returns by function\n"
    )


if __name__ == "__main__":
    main()
