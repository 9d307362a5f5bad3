"""Assignors of your own: an external command, or a Python callable in a process of its own.

Both speak lines: a group document goes in, an assignment document comes out. A custom
assignor is known by a name that holds all there is to know about it, so that it travels to
the workers as the names of Kafka's assignors do: ``cmd:./mine``, ``python:mine:assign``,
and with a limit other than the usual one ``cmd@2.5s:./mine``.
"""

import re
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from kassay.reference.model.errors import InputError

ANSWER_SECONDS = 10.0
_NAME = re.compile(r"(?P<kind>cmd|python)(@(?P<seconds>[0-9.e+-]+)s)?:(?P<what>.+)", re.DOTALL)
_CALLABLE = re.compile(r"(?P<module>[^:]+):(?P<function>[A-Za-z_][\w.]*)")


@dataclass(frozen=True, slots=True)
class UserAssignor:
    """A custom assignor, taken apart.

    Parameters
    ----------
    command
        The process to start, argument by argument.
    seconds
        Wall-clock seconds that one answer may take.
    """

    command: tuple[str, ...]
    seconds: float


def is_user_assignor(name: str) -> bool:
    """Tell whether a name is that of a custom assignor.

    Examples
    --------
    >>> is_user_assignor("cmd:./mine"), is_user_assignor("sticky")
    (True, False)
    """
    return _NAME.fullmatch(name) is not None


def parse_user_assignor(name: str) -> UserAssignor:
    """Take the name of a custom assignor apart.

    Raises
    ------
    InvalidGroupError
        If it names none.

    Examples
    --------
    >>> parse_user_assignor("cmd@2.5s:./mine --fast")
    UserAssignor(command=('./mine', '--fast'), seconds=2.5)
    """
    match = _NAME.fullmatch(name)
    if match is None:
        raise InputError(f"no custom assignor {name!r}")
    seconds = float(match["seconds"]) if match["seconds"] else ANSWER_SECONDS
    what = match["what"]
    if match["kind"] == "python":
        _callable(what)
        return UserAssignor(
            (sys.executable, "-m", "kassay.experiments.implementations.callable_server", what),
            seconds,
        )
    try:
        command = tuple(shlex.split(what))
    except ValueError as error:
        raise InputError(f"assignor command {what!r}: {str(error).lower()}") from None
    if not command:
        raise InputError(f"assignor command {what!r} is empty")
    return UserAssignor(command, seconds)


def user_assignor_names(
    *,
    commands: Sequence[str] = (),
    callables: Sequence[str] = (),
    seconds: float = ANSWER_SECONDS,
) -> list[str]:
    """Name custom assignors.

    Parameters
    ----------
    commands
        Command lines, split as a shell does, without a shell.
    callables
        ``module:function``, or ``file.py:function``.
    seconds
        Wall-clock seconds that one answer may take.

    Raises
    ------
    InvalidGroupError
        If one of them cannot be a command or a callable.

    Examples
    --------
    >>> user_assignor_names(commands=["./mine"], callables=["mine:assign"], seconds=2.5)
    ['cmd@2.5s:./mine', 'python@2.5s:mine:assign']
    """
    limit = "" if seconds == ANSWER_SECONDS else f"@{seconds:g}s"
    names = [f"cmd{limit}:{command}" for command in commands]
    names += [f"python{limit}:{function}" for function in callables]
    for name in names:
        if not is_user_assignor(name):
            raise InputError(f"assignor {name!r} is empty")
        parse_user_assignor(name)
    return list(dict.fromkeys(names))


def _callable(what: str) -> tuple[str, str]:
    match = _CALLABLE.fullmatch(what)
    if match is None:
        raise InputError(f"assignor {what!r} is not of the form module:function")
    return match["module"], match["function"]
