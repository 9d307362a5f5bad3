import resource
import subprocess
import sys
import time

import pytest

from kassay.experiments.comparison.compare import CaseLimits
from kassay.experiments.study.cases import Case
from kassay.experiments.study.evaluate_case import (
    evaluate_case,
    memory_limit,
    run_isolated,
    time_limit,
)

CASE = Case(family="named", seed=2, assignors=("range", "sticky"))


def test_a_child_process_returns_the_same_record():
    isolated, direct = run_isolated(evaluate_case, CASE, limits=CaseLimits()), evaluate_case(CASE)
    assert (isolated.group, isolated.optimum) == (direct.group, direct.optimum)
    assert isolated.assignments == direct.assignments
    assert isolated.comparisons == direct.comparisons


def test_the_time_limit_kills_a_process_that_hangs():
    def hang(_):
        with time_limit(0.1):
            time.sleep(600)

    record = run_isolated(hang, CASE, limits=CaseLimits())
    assert record.group.error == "the process that evaluated this group was killed by SIGALRM"


def test_the_memory_limit_applies_inside_its_block_only():
    before = resource.getrlimit(resource.RLIMIT_AS)
    with memory_limit(1024):
        bytearray(500 << 20)  # the memory that is already in use does not count
        with pytest.raises(MemoryError):
            bytearray(1100 << 20)
    assert resource.getrlimit(resource.RLIMIT_AS) == before


def test_arrow_allocates_within_the_lowest_memory_limit():
    task = "import pyarrow as pa\n"
    task += "from kassay.experiments.study.evaluate_case import memory_limit\n"
    task += "with memory_limit(1024): pa.array(['text'] * 1000)"
    subprocess.run([sys.executable, "-c", task], check=True)
