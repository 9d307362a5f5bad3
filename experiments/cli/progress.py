"""Progress of a long computation, as notes on standard error."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

from kassay.experiments.cli.messages import print_note

_SECONDS = 1.0
"""Time in seconds to the first note, and between notes about different steps."""
_SECONDS_PER_STEP = 5.0
"""Time in seconds between notes about the same step."""


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
        while not ended.wait(_SECONDS):
            step, now = self._step, time.monotonic()
            if step != printed or now - printed_at >= _SECONDS_PER_STEP:
                printed, printed_at = step, now
                print_note(f"{self._name}: {step}, {now - start:.0f} s")


PROGRESS = Progress()
"""Progress of the running command."""
