"""Driver of a new classic coordinator."""

import pytest

from tests.reference.coordinator.driver import Driver


@pytest.fixture
def driver() -> Driver:
    return Driver()
