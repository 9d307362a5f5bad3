"""Independence of Python's hash seed."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kassay.reference.assignors import ASSIGNORS
from tests.goldens.cases import PINNED, ported, read
from tests.tiers import short_and_long

ROOT = Path(__file__).parents[3]


def results_digest(step: int) -> str:
    """Return a digest of the ports' results on every ``step``-th recorded group."""
    digest = hashlib.sha256()
    for case in list(read(PINNED))[::step]:
        for assignor in ASSIGNORS:
            digest.update(json.dumps(ported(case, assignor)).encode())
    return digest.hexdigest()


@pytest.mark.parametrize(("step", "seeds"), short_and_long((12, "01"), (4, "012")))
def test_results_do_not_depend_on_the_hash_seed(step: int, seeds: str) -> None:
    command = f"from {__name__} import results_digest; print(results_digest({step}))"
    printed = {
        subprocess.run(
            [sys.executable, "-c", command],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in seeds
    }
    assert printed == {results_digest(step) + "\n"}
