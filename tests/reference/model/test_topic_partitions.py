import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kassay import Partitions, TopicPartition

pairs = st.lists(st.tuples(st.text(max_size=3), st.integers(0, 2**31 - 1)), max_size=12)


@given(pairs)
def test_partitions_keep_content_and_order(given_pairs):
    partitions = Partitions.of(given_pairs)
    assert [tuple(tp) for tp in partitions] == given_pairs
    assert len(partitions) == len(given_pairs)
    assert partitions.to_list() == [TopicPartition(*pair) for pair in given_pairs]


@given(pairs, pairs)
def test_partitions_are_equal_if_their_sequences_are_equal(left, right):
    assert (Partitions.of(left) == Partitions.of(right)) == (left == right)
    if left == right:
        assert hash(Partitions.of(left)) == hash(Partitions.of(right))


def test_equality_of_partitions_ignores_unused_topic_names():
    whole = Partitions.of([("a", 0), ("b", 1)])
    assert whole[1:] == Partitions.of([("b", 1)])
    assert hash(whole[1:]) == hash(Partitions.of([("b", 1)]))
    assert whole[1:] != whole[:1]
    assert whole != "ab"


@given(pairs)
def test_pickled_partitions_are_equal_and_read_only(given_pairs):
    again = pickle.loads(pickle.dumps(Partitions.of(given_pairs)))
    assert again == Partitions.of(given_pairs)
    assert not again.numbers.flags.writeable


def test_partitions_are_immutable():
    partitions = Partitions.of([("t", 0)])
    with pytest.raises(AttributeError, match="immutable"):
        partitions.topics = ("u",)
    with pytest.raises(ValueError, match="read-only"):
        partitions.numbers[0] = 7


def test_columns_are_read_only_even_if_their_source_array_is_writable():
    numbers = np.array([1], dtype=np.int32)
    partitions = Partitions(("t",), np.zeros(1, dtype=np.int32), numbers)
    assert numbers.flags.writeable
    assert not partitions.numbers.flags.writeable


def test_columns_of_different_lengths_are_rejected():
    with pytest.raises(ValueError, match="must have equal lengths, got 1 and 2"):
        Partitions(("t",), np.zeros(1, np.int32), np.zeros(2, np.int32))


def test_a_list_of_a_million_partitions_takes_eight_megabytes():
    ones = np.arange(1_000_000, dtype=np.int32)
    partitions = Partitions(("t",), np.zeros(1_000_000, np.int32), ones)
    assert partitions.codes.nbytes + partitions.numbers.nbytes == 8_000_000
    assert partitions[999_999] == ("t", 999_999)
