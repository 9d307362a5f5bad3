"""Hypothesis profiles, groups of parallel tests, shared fixtures, and the signal SIGINT."""

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
settings.register_profile("quick", settings.get_profile("ci"), max_examples=30)
settings.register_profile("soak", settings.get_profile("dev"), max_examples=10_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

# The shell lets a background job ignore SIGINT, and tests send SIGINT to child processes.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Group tests that one process runs: by file, and all with Spark or of documentation.

    Tests with Spark share one session, and pages of the documentation share the folder `out`.
    These two groups take longest, and therefore come first.
    """
    for item in items:
        item.add_marker(pytest.mark.xdist_group(_group(item)))
    items.sort(key=lambda item: _FIRST_GROUPS.get(_group(item), len(_FIRST_GROUPS)))


_FIRST_GROUPS = {"spark": 0, "documentation": 1}


def _group(item: pytest.Item) -> str:
    if item.get_closest_marker("spark") or "spark" in getattr(item, "fixturenames", ()):
        return "spark"
    return "documentation" if item.path.suffix == ".md" else item.path.relative_to(ROOT).as_posix()


@pytest.fixture(scope="session")
def shared_fixtures() -> Path:
    """Return the folder of recorded outputs beside the repository; skip if it is absent."""
    if not SHARED_FIXTURES.is_dir():
        pytest.skip("needs ../shared/fixtures")
    return SHARED_FIXTURES
