"""Exit codes, messages on standard error, Ctrl-C and progress of a running command."""

import _thread
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread, current_thread, main_thread
from typing import NoReturn, TypeVar

import typer

BAD_INPUT = 2
"""Exit code for bad input and usage errors."""
NOT_REACHED = 1
"""Exit code if a requested condition is not met."""
INTERRUPTED = 130
"""Exit code of a command that Ctrl-C stopped."""


def print_error(message: str) -> None:
    """Write one error line to standard error."""
    from rich.console import Console

    console = Console(stderr=True, highlight=False, soft_wrap=True)
    # Under NO_COLOR rich omits colours but not bold.
    console.print("kassay:", style="" if console.no_color else "bold red", end=" ")
    console.print(message, markup=False)


def print_note(message: str) -> None:
    """Write one informational line to standard error."""
    typer.echo(f"kassay: {message}", err=True)


_Result = TypeVar("_Result")

STOP = Event()
"""Event that Ctrl-C sets while `stop_on_interrupt` is active, to stop searches."""

_GRACE_SECONDS, _GRACE_PROCESSOR_SECONDS, _MAX_GRACE_SECONDS = 1.7, 1.0, 6.0
"""Time after Ctrl-C until a search that does not check `STOP` is ended without a result.

On a machine with many other processes, the search may take longer, until it has used the
processor for some time or the maximum is reached.
"""
_SECONDS_TO_NOTE = 1.0
"""Time in seconds to the first note, and between notes about different steps."""
_SECONDS_PER_NOTE = 5.0
"""Time in seconds between notes about the same step."""


@contextmanager
def stop_on_interrupt() -> Iterator[None]:
    """Let the first Ctrl-C set `STOP` instead of raising KeyboardInterrupt.

    The second Ctrl-C, or the end of the grace period, raises KeyboardInterrupt.
    """
    previous = signal.getsignal(signal.SIGINT)
    if current_thread() is not main_thread() or previous is signal.SIG_IGN:
        yield
        return
    ended = Event()

    def stop(number: int, frame: object) -> None:  # noqa: ARG001 - the signature of a handler
        signal.signal(signal.SIGINT, signal.default_int_handler)
        STOP.set()
        Thread(target=_interrupt_after_grace, args=(ended,), daemon=True).start()

    signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        ended.set()
        signal.signal(signal.SIGINT, previous)


def _interrupt_after_grace(ended: Event) -> None:
    start, processor_start = time.monotonic(), time.process_time()
    while not ended.wait(0.05):
        seconds, used = time.monotonic() - start, time.process_time() - processor_start
        is_over = seconds > _GRACE_SECONDS and used > _GRACE_PROCESSOR_SECONDS
        if is_over or seconds > _MAX_GRACE_SECONDS:
            _thread.interrupt_main()
            return


@contextmanager
def note_on_interrupt(note: str) -> Iterator[None]:
    """Print a note if Ctrl-C ends the ``with`` block."""
    try:
        yield
    except KeyboardInterrupt:
        print_note(f"interrupted: {note}")
        raise


def call_interruptibly(call: Callable[[], _Result], *, lost: str) -> _Result:
    """Call a function that Ctrl-C can stop. End the process if the function returns no result."""
    try:
        with stop_on_interrupt():
            return call()
    except KeyboardInterrupt:
        exit_interrupted(lost)


def exit_interrupted(note: str) -> NoReturn:
    """Print a note, and end this process, its threads and child processes immediately."""
    from kassay.experiments.implementations.runner import close_processes

    print_note(f"interrupted: {note}")
    sys.stdout.flush()
    sys.stderr.flush()
    close_processes()
    os._exit(INTERRUPTED)


class Progress:
    """Current step of a long computation. A thread prints it, from the first second."""

    def __init__(self) -> None:
        self._name = self._step = ""

    def __call__(self, step: str) -> None:
        """Set the current step of the computation."""
        self._step = step

    @contextmanager
    def shown(self, name: str) -> Iterator[None]:
        """Print the steps of a computation that takes more than a second, after its name."""
        self._name, self._step = name, "search"
        ended = Event()
        thread = Thread(target=self._print_until, args=(ended,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def _print_until(self, ended: Event) -> None:
        start, printed, printed_at = time.monotonic(), "", 0.0
        while not ended.wait(_SECONDS_TO_NOTE):
            step, now = self._step, time.monotonic()
            if step != printed or now - printed_at >= _SECONDS_PER_NOTE:
                printed, printed_at = step, now
                print_note(f"{self._name}: {step}, {now - start:.0f} s")


PROGRESS = Progress()
"""Progress of the running command."""
