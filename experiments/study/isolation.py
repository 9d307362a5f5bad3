"""Limits on a process that studies groups, and processes of their own for groups that need one.

Most groups are studied where they are: a watchdog and a limit on memory cost next to
nothing. A group that takes its process down, because native code crashes, hangs or asks for
too much, is found by whoever starts that process again: there every group gets a child of
its own, and what a child dies of becomes a row.
"""

import os
import pickle
import resource
import select
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kassay.experiments.compare import CaseLimits
from kassay.experiments.study.case import Case
from kassay.experiments.study.evaluate_case import failed_record
from kassay.experiments.study.table_rows import CaseRecord

Judge = Callable[[Case], CaseRecord]
_MEBIBYTE = 1 << 20


@contextmanager
def memory_limit(mebibytes: int) -> Iterator[None]:
    """Limit the address space of this process, never beyond the limit that it has."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    wanted = mebibytes * _MEBIBYTE
    known = [limit for limit in (soft, hard) if limit != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_AS, (min([wanted, *known]), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@contextmanager
def watchdog() -> Iterator[Callable[[float], None]]:
    """Yield a function that ends this process unless it is called again within the seconds.

    The clock is the kernel's, whose signal ends a process that hangs in native code as well.
    """

    def wind(seconds: float) -> None:
        signal.setitimer(signal.ITIMER_REAL, seconds)

    try:
        yield wind
    finally:
        wind(0)


def run_isolated(judge: Judge, case: Case, *, limits: CaseLimits) -> CaseRecord:
    """Study a case in a child of this process.

    Parameters
    ----------
    judge
        What to do with the case.
    case
        What to study.
    limits
        What it may use up; ``group`` and ``memory`` hold for the child.

    Returns
    -------
    Record
        What the child found; if it died or was ended, a record that says how.

    Examples
    --------
    >>> from kassay.experiments.compare import LIMITS
    >>> case = Case(family="named", seed=0, assignors=())
    >>> end = lambda _: os.kill(os.getpid(), signal.SIGKILL)
    >>> run_isolated(end, case, limits=LIMITS).group.error
    'the process that studied this group died of SIGKILL'
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _run(judge, case, writing, limits)
    os.close(writing)
    try:
        answer = _read(reading, time.monotonic() + limits.group)
    finally:
        os.close(reading)
    if answer is None:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return failed_record(case, f"took more than {limits.group:g} s")
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code == 0:
        record: CaseRecord = pickle.loads(answer)  # noqa: S301 - our own child wrote it
        return record
    return failed_record(case, _death(code))


def _run(judge: Judge, case: Case, writing: int, limits: CaseLimits) -> None:
    """Be the child: whatever happens, it does not return."""
    code = 1
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with memory_limit(limits.memory), os.fdopen(writing, "wb") as pipe:
            pickle.dump(judge(case), pipe)
        code = 0
    finally:
        os._exit(code)


def _read(pipe: int, deadline: float) -> bytes | None:
    """Read to the end; None if that does not come in time."""
    parts: list[bytes] = []
    while True:
        ready, _, _ = select.select([pipe], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            return None
        part = os.read(pipe, 1 << 16)
        if not part:
            return b"".join(parts)
        parts.append(part)


def _death(code: int) -> str:
    how = f"died of {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
    return f"the process that studied this group {how}"
