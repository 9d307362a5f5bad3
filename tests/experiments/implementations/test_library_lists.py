"""Each client library of ``libraries.yaml`` is complete: driver, runtime, client id, assignors."""

import pytest

from kassay.experiments.implementations.client_libraries import DRIVERS, libraries, runtimes
from kassay.experiments.planning.identify_assignor import OFFERED
from kassay.experiments.sources.recognise_library import LIBRARIES

NAMES_OF_MEMBERS = {"kafka-clients": "java"}
NOT_RECOGNISED = {"kafka-broker", "kafka-connect", "platformatic-kafka"}
"""Brokers and Connect workers are no consumers; @platformatic/kafka has a random client id."""


@pytest.mark.parametrize("name", libraries())
def test_the_runtime_of_a_library_is_known_and_has_a_driver(name):
    runtime = libraries()[name].runtime
    assert runtime in runtimes(), "experiments/implementations/libraries.yaml has no such runtime"
    assert list((DRIVERS / runtime).iterdir()), "experiments/implementations/drivers has no driver"


@pytest.mark.parametrize("name", sorted(libraries().keys() - NOT_RECOGNISED))
def test_members_of_a_library_are_recognised_and_their_assignors_are_known(name):
    member_library = NAMES_OF_MEMBERS.get(name, name)
    assert member_library in LIBRARIES, "experiments/sources/libraries.txt lacks the library"
    assert member_library in OFFERED, "identify_assignor.py lacks the assignors of the library"


def test_each_recognised_library_has_its_assignors_listed():
    assert set(OFFERED) == LIBRARIES
