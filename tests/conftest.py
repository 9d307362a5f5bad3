"""Hypothesis profiles, groups of parallel tests, shared fixtures, and the signal SIGINT."""

import os
import signal
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.vendor.pretty import for_type_by_name
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from kassay.reference.documents.json_codec import group_document

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

# The text of a group is short; a failed test shows the complete group.
for_type_by_name(
    "kassay.reference.model.group",
    "Group",
    lambda group, printer, _: printer.text(f"parse_group({group_document(group)})"),
)

_LONG_GROUPS = ("spark", "documentation", "tests/test_wheel.py", "tests/test_extending.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort the groups of tests that take longest to the front."""
    place = {name: index for index, name in enumerate(_LONG_GROUPS)}
    items.sort(key=lambda item: place.get(_group(item.nodeid), len(place)))


class _Groups(LoadScopeScheduling):
    """Parallel groups of tests: by file, all files with Spark, and all of the documentation.

    Tests with Spark share one session, and pages of the documentation share the folder `out`.
    """

    def _split_scope(self, nodeid: str) -> str:
        return _group(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> _Groups:
    return _Groups(config, log)


def _group(nodeid: str) -> str:
    return _group_of_file(nodeid.partition("::")[0])


@cache
def _group_of_file(path: str) -> str:
    if path.endswith(".md"):
        return "documentation"
    return "spark" if "pytest.mark.spark" in (ROOT / path).read_text(encoding="utf-8") else path


@pytest.fixture(scope="session")
def shared_fixtures() -> Path:
    """Return the folder of recorded outputs beside the repository; skip if it is absent."""
    if not SHARED_FIXTURES.is_dir():
        pytest.skip("needs ../shared/fixtures")
    return SHARED_FIXTURES
