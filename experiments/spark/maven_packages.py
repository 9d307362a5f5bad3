"""Spark with packages from Maven, which takes hundreds of lines, and one error if it cannot."""

import os
import re
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import PySparkRuntimeError

from kassay.reference.model.errors import InputError

PACKAGES = "spark.jars.packages"
_WAIT = 10.0  # seconds
_REASON = re.compile(
    r"^(?:Exception in thread .*?: )?.*?(unresolved dependency: .*|requirement .*)$"
)


@contextmanager
def captured_stderr(packages: str) -> Iterator[None]:
    """Start Spark within this, quietly: hundreds of lines tell of each jar.

    Processes started meanwhile, the Java one of Spark's among them, have their error
    output passed on once the block is over.

    Raises
    ------
    InvalidGroupError
        If Spark ends before it is there, with the reason that it gives.
    """
    heard: list[str] = []
    over = threading.Event()
    last = f"{secrets.token_hex(16)}\n"
    before = os.dup(2)
    end, own = os.pipe()
    listener = threading.Thread(target=_listen, args=(end, before, heard, last, over), daemon=True)
    listener.start()
    os.dup2(own, 2)
    try:
        yield
    except PySparkRuntimeError as error:
        _hear_out(own, last, over)
        raise InputError(
            f"Spark did not start with the package {packages}: {_reason(heard) or error}"
        ) from None
    finally:
        os.dup2(before, 2)
        _hear_out(own, last, over)
        os.close(own)


def _hear_out(own: int, last: str, over: threading.Event) -> None:
    """Wait until all that was written so far has been heard.

    Processes that are still there keep the pipe open, so that its end cannot tell.
    """
    if not over.is_set():
        os.write(own, f"\n{last}".encode())
        over.wait(_WAIT)


def _listen(end: int, before: int, heard: list[str], last: str, over: threading.Event) -> None:
    with os.fdopen(end, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if line == last:
                over.set()
            elif over.is_set():
                os.write(before, line.encode())
            else:
                heard.append(line.rstrip())


def _reason(heard: list[str]) -> str | None:
    """Pick the line that says why, out of a long report and a stack trace."""
    found = [match[1].rstrip("]") for line in heard if (match := _REASON.match(line))]
    if found:
        return found[0]
    thrown = [line for line in heard if line.startswith("Exception in thread")]
    return thrown[0].partition(": ")[2] if thrown else None
