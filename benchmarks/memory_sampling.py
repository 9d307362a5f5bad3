"""How much memory this process and all below it take, over time."""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

_PAUSE = 1.0  # seconds


class Sample(NamedTuple):
    """Memory at one moment, in MiB; what processes share is divided among them.

    Parameters
    ----------
    seconds
        Since sampling began.
    java, python
        Of the processes of each.
    """

    seconds: float
    java: int
    python: int


@contextmanager
def sampled() -> Iterator[list[Sample]]:
    """Sample memory once a second, for as long as the block lasts."""
    samples: list[Sample] = []
    over = threading.Event()
    begin = time.perf_counter()

    def sample() -> None:
        while not over.wait(_PAUSE):
            java = python = 0
            for pid in _family(os.getpid()):
                if _name(pid) == "java":
                    java += _resident(pid)
                else:
                    python += _resident(pid)
            samples.append(Sample(time.perf_counter() - begin, java >> 20, python >> 20))

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield samples
    finally:
        over.set()
        thread.join()


def by_parts(samples: list[Sample], parts: int) -> Iterator[Sample]:
    """Yield the greatest amounts in each of so many equal parts of the time."""
    for part in range(parts):
        mine = samples[len(samples) * part // parts : len(samples) * (part + 1) // parts]
        if mine:
            yield Sample(
                mine[-1].seconds,
                max(sample.java for sample in mine),
                max(sample.python for sample in mine),
            )


def _family(root: int) -> list[int]:
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it has ended since
            parents[int(entry.name)] = int(fields[1])
    found = [root]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def _resident(pid: int) -> int:
    """Return the proportional set size of a process, in bytes: shared pages count once."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    line = next((line for line in text.splitlines() if line.startswith("Pss:")), "Pss: 0")
    return int(line.split()[1]) << 10
