"""Case evaluations that crash or block their process."""

import ctypes
import os
import signal

import numpy as np

from kassay.experiments.study.evaluate_case import evaluate_case, failed_record


def abort():
    os.abort()


def segfault():
    os.kill(os.getpid(), signal.SIGSEGV)


def hang():
    """Block in native code, where Python raises no exception."""
    ctypes.CDLL(None).sleep(600)


def exhaust_memory():
    """Reserve address space without using memory."""
    blocks = []
    while True:
        blocks.append(np.empty(1 << 28))


FAULTS = {"abort": abort, "segfault": segfault, "hang": hang, "exhaust_memory": exhaust_memory}


def evaluate_with_crashes(case, *, bad):
    """Evaluate a case; crash in the way that `bad` gives for its name."""
    try:
        if case.name in bad:
            FAULTS[bad[case.name]]()
        return evaluate_case(case)
    except MemoryError as error:
        return failed_record(case, f"MemoryError: {error}")
