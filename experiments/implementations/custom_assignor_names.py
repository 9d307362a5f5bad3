"""Parse names of custom assignors, such as ``cmd:./mine`` or ``python:mine:assign``.

A custom assignor is a command or a Python callable. Both run in a process of their own. The
name contains everything that is needed to run the assignor, so that Spark workers need nothing
else: ``cmd:./mine``, ``python:mine:assign``, or with a time limit ``cmd@2.5s:./mine``.
"""

import math
import re
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from kassay.reference.model.errors import InputError

ANSWER_SECONDS = 10.0
_NAME = re.compile(r"(?P<kind>cmd|python)(@(?P<seconds>[0-9.e+-]+)s)?:(?P<target>.+)", re.DOTALL)
_CALLABLE = re.compile(r"[^:]+:[A-Za-z_][\w.]*")
_SERVER = "kassay.experiments.implementations.callable_server"


@dataclass(frozen=True, slots=True)
class CustomAssignor:
    """A custom assignor: its command, and its time limit per group in seconds."""

    command: tuple[str, ...]
    seconds: float


def is_custom_assignor(name: str) -> bool:
    """Return whether a name has the form ``cmd:...`` or ``python:...``."""
    return _NAME.fullmatch(name) is not None


def parse_custom_assignor(name: str) -> CustomAssignor:
    """Parse the name of a custom assignor into its command and time limit.

    Examples
    --------
    >>> parse_custom_assignor("cmd@2.5s:./mine --fast")
    CustomAssignor(command=('./mine', '--fast'), seconds=2.5)
    """
    match = _NAME.fullmatch(name)
    if match is None:
        raise InputError(
            f"unknown assignor {name!r}: names of custom assignors start with cmd: or python:"
        )
    has_limit = match["seconds"] is not None
    seconds = parse_time_limit(name, match["seconds"]) if has_limit else ANSWER_SECONDS
    target = match["target"]
    if match["kind"] == "python":
        if _CALLABLE.fullmatch(target) is None:
            raise InputError(f"a Python assignor must be given as module:function, got {target!r}")
        return CustomAssignor((sys.executable, "-m", _SERVER, target), seconds)
    try:
        command = tuple(shlex.split(target))
    except ValueError as error:
        raise InputError(
            f"the assignor command {target!r} is not valid: {str(error).lower()}"
        ) from None
    if not command:
        raise InputError(f"the assignor name {name!r} contains no command")
    return CustomAssignor(command, seconds)


def parse_time_limit(name: str, seconds: str) -> float:
    """Parse the time limit per group in the name of an assignor, in seconds.

    Raises
    ------
    InputError
        If the time limit is not a positive, finite number.
    """
    try:
        limit = float(seconds)
    except ValueError:
        limit = math.nan
    if not 0 < limit < math.inf:
        raise InputError(
            f"the time limit of assignor {name!r} must be a positive number of seconds, "
            f"got {seconds!r}"
        )
    return limit


def custom_assignor_names(
    *,
    commands: Sequence[str] = (),
    callables: Sequence[str] = (),
    seconds: float = ANSWER_SECONDS,
) -> list[str]:
    """Build names of custom assignors from commands, callables and a time limit.

    Examples
    --------
    >>> custom_assignor_names(commands=["./mine"], callables=["mine:assign"], seconds=2.5)
    ['cmd@2.5s:./mine', 'python@2.5s:mine:assign']
    """
    limit = "" if seconds == ANSWER_SECONDS else f"@{seconds:g}s"
    names = [f"cmd{limit}:{command}" for command in commands]
    names += [f"python{limit}:{function}" for function in callables]
    for name in names:
        if not is_custom_assignor(name):
            raise InputError(f"the assignor name {name!r} contains no command or function")
        parse_custom_assignor(name)
    return list(dict.fromkeys(names))
