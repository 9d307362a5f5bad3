"""Independence of the ports' results of earlier calls and of Python's hash seed."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conformance.digest import outputs
from tests.conformance.port_comparison import port_output
from tests.conformance.upstream import NAMES

_ROOT = Path(__file__).parents[2]
_HASH_SEEDS = ("0", "1", "2")
_GROUPS = 400


@pytest.mark.parametrize("name", NAMES)
def test_results_do_not_depend_on_the_order_of_groups(name: str) -> None:
    cases = list(outputs(name, _GROUPS))
    for group, output in random.Random(name).sample(cases, len(cases)):
        assert port_output(group, name) == output


@pytest.mark.long
def test_results_do_not_depend_on_the_hash_seed() -> None:
    printed = {_digests(seed) for seed in _HASH_SEEDS}
    assert len(printed) == 1
    assert len(printed.pop().splitlines()) == len(NAMES)


def _digests(hash_seed: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "tests.conformance.digest", str(_GROUPS)],
        cwd=_ROOT,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    return done.stdout
