"""Hypothesis profiles, the folder of shared fixtures, and the signal SIGINT."""

import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).parent.parent
SHARED_FIXTURES = ROOT.parent / "shared" / "fixtures"

_SLOW_DRAWS = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)
settings.register_profile("dev", deadline=None, max_examples=100, suppress_health_check=_SLOW_DRAWS)
settings.register_profile("ci", settings.get_profile("dev"), derandomize=True)
settings.register_profile("soak", settings.get_profile("dev"), max_examples=10_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

# The shell lets a background job ignore SIGINT, and tests send SIGINT to child processes.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def shared_fixtures() -> Path:
    """Return the folder of recorded outputs beside the repository; skip if it is absent."""
    if not SHARED_FIXTURES.is_dir():
        pytest.skip(f"no {SHARED_FIXTURES.parent.name}/fixtures beside this checkout")
    return SHARED_FIXTURES
