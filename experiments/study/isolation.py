"""Evaluate cases with memory and time limits, in this process or in a child process.

If a case kills the worker's process, because native code crashes, hangs or needs too much memory,
the task is retried with one child process per case. The death of a child process becomes a row of
the results.
"""

import multiprocessing
import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

from kassay.experiments.comparison.optimum import CaseLimits
from kassay.experiments.study.case import Case
from kassay.experiments.study.evaluate_case import failed_record
from kassay.experiments.study.table_rows import CaseRecord
from kassay.reference.model.errors import KassayError

Evaluator = Callable[[Case], CaseRecord]
_LINUX_MEMORY = Path("/proc/self/statm")


@contextmanager
def memory_limit(mebibytes: int | None) -> Iterator[None]:
    """Limit the additional memory of this process to ``mebibytes`` during a ``with`` block.

    The limit applies to the address space that is added to the current address space.

    None means no limit. Never raise the current limit of the process.
    """
    if mebibytes is None:
        yield
        return
    limit = (mebibytes << 20) + _address_space()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    finite = [value for value in (soft, hard) if value != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_AS, (min([limit, *finite]), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _address_space() -> int:
    """Return the size of this process's address space in bytes, or 0 on non-Linux systems."""
    if not _LINUX_MEMORY.exists():
        return 0
    return int(_LINUX_MEMORY.read_text(encoding="ascii").split()[0]) * resource.getpagesize()


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Kill this process if a ``with`` block takes longer, also while native code hangs."""
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def run_isolated(evaluate: Evaluator, case: Case, *, limits: CaseLimits) -> CaseRecord:
    """Evaluate a case in a child process with a time limit and a memory limit.

    If the child dies, the record contains the reason. A `KassayError` in the child is raised here.
    """
    # A forked child needs no import of the solver, and the evaluator need not be pickled.
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_run_child, args=(evaluate, case, sender, limits))
    child.start()
    sender.close()
    try:
        if receiver.poll(limits.group):
            answer: CaseRecord | KassayError = receiver.recv()
            if isinstance(answer, KassayError):
                raise answer
            record = answer
        else:
            record = failed_record(case, f"the evaluation took more than {limits.group:g} s")
    except EOFError:
        child.join()
        death = _death(child.exitcode)
        record = failed_record(case, f"the process that evaluated this group {death}")
    finally:
        receiver.close()
        child.kill()
        child.join()
    return record


def _run_child(evaluate: Evaluator, case: Case, sender: Connection, limits: CaseLimits) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with memory_limit(limits.memory):
        try:
            sender.send(evaluate(case))
        except KassayError as error:
            sender.send(error)


def _death(code: int | None) -> str:
    if code is not None and code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    return f"ended with exit code {code}"
