"""Runs a kassay command and sends SIGINT to its own process during the first search.

Arguments: number of signals, processor seconds of search before the first signal, and the command.
Writes the processor time used before the signal to standard error.
"""

import os
import signal
import sys
import time
from threading import Thread

# The imports of large libraries are no search. Without cached byte code, they take seconds.
import pandas as pd  # noqa: F401
import scipy.optimize  # noqa: F401

import kassay.solver.cpsat.level_search  # noqa: F401
from kassay.experiments.cli import main


def _interrupt(signals: int, seconds: float) -> None:
    handler = signal.getsignal(signal.SIGINT)
    while signal.getsignal(signal.SIGINT) is handler:
        time.sleep(0.01)
    start = time.process_time()
    while time.process_time() < start + seconds:
        time.sleep(0.01)
    sys.stderr.write(f"processor time: {time.process_time()}\n")
    for _ in range(signals):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.2)


if __name__ == "__main__":
    Thread(target=_interrupt, args=(int(sys.argv[1]), float(sys.argv[2])), daemon=True).start()
    main(sys.argv[3:])
