import pytest

from benchmarks.names_of_groups import HEADER, count_missed


@pytest.mark.long
def test_more_small_groups_are_missed_with_some_names_than_with_those_of_the_family():
    found = [count_missed("worlds-3x3", "uniform")[name] for name in HEADER[1:]]
    assert found == [476, 12, 32, 8243, 491]
