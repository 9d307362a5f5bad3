"""Groups that take the process down which studies them."""

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
    """In native code, where no Python runs and no exception is seen."""
    ctypes.CDLL(None).sleep(600)


def eat():
    """Address space alone: the machine has other things to do."""
    kept = []
    while True:
        kept.append(np.empty(1 << 28))


FAULTS = {"abort": abort, "segfault": segfault, "hang": hang, "eat": eat}


def judge(case, *, bad):
    try:
        if case.name in bad:
            FAULTS[bad[case.name]]()
        return evaluate_case(case)
    except MemoryError as error:
        return failed_record(case, f"MemoryError: {error}")
