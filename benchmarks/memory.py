"""Measure the memory and CPU time of this process and of its child processes."""

import resource
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

_SAMPLING_SECONDS = 1.0
_LINUX_STATUS = Path("/proc/self/status")


def peak_memory() -> int:
    """Return the peak resident memory of this process, in MB."""
    if not _LINUX_STATUS.exists():  # macOS, where getrusage counts bytes
        return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6)
    # On Linux, getrusage includes the memory of the parent process before exec.
    lines = _LINUX_STATUS.read_text().splitlines()
    peak = next(line for line in lines if line.startswith("VmHWM:"))
    return round(int(peak.split()[1]) * 1024 / 1e6)


def cpu_seconds() -> dict[int, float]:
    """Return the CPU seconds of this process and of its running descendants, by process id."""
    seconds, root = {}, psutil.Process()
    for process in (root, *root.children(recursive=True)):
        with suppress(psutil.Error):  # the process ended
            seconds[process.pid] = sum(process.cpu_times()[:2])  # user and system
    return seconds


@dataclass(slots=True)
class PeakMemory:
    """Peak memory of Java and of all other processes, in MiB; shared pages count once."""

    java: int = 0
    python: int = 0


@contextmanager
def sampled_peak() -> Iterator[PeakMemory]:
    """Measure peak memory: sample this process and its descendants once per second."""
    peak = PeakMemory()
    stopped = threading.Event()

    def sample() -> None:
        while not stopped.wait(_SAMPLING_SECONDS):
            java = python = 0
            root = psutil.Process()
            for process in (root, *root.children(recursive=True)):
                with suppress(psutil.Error):  # the process ended
                    size = _memory(process)
                    if process.name() == "java":
                        java += size
                    else:
                        python += size
            peak.java = max(peak.java, java >> 20)
            peak.python = max(peak.python, python >> 20)

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield peak
    finally:
        stopped.set()
        thread.join()


def _memory(process: psutil.Process) -> int:
    """Return a process's proportional set size in bytes, or else its unique set size."""
    memory = process.memory_full_info()
    return int(getattr(memory, "pss", memory.uss))
