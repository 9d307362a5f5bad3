"""Weights per window from recorded traffic: right, assumed with a note, or refused."""

import pytest

from kassay.experiments.sources.weight_windows import DAY, WEEK, read_weight_windows
from kassay.reference.model.errors import InputError

MONDAY = 1_764_547_200  # 2025-12-01 00:00 UTC


def rows(values, step=3_600, start=MONDAY):
    """Return CSV with values by partition of the topic t; None has no row."""
    lines = [
        f"{start + at * step},t,{number},{value}"
        for number, row in enumerate(values)
        for at, value in enumerate(row)
        if value is not None
    ]
    return "time,topic,partition,value\n" + "\n".join(lines)


@pytest.fixture
def read(tmp_path):
    def read(text, **options):
        path = tmp_path / "traffic"
        path.write_text(text)
        return read_weight_windows(path, **options)

    return read


def test_values_of_a_window_are_summed(read):
    found = read(rows([[1, 2, 3, 4, 5, 6, 7, 8], [10**18] * 8], step=900))
    assert found.weights["t"] == [[10, 26], [4 * 10**18] * 2]
    assert found.names == ("2025-12-01 00:00", "2025-12-01 01:00")
    assert (found.start, found.seconds) == (MONDAY, 3_600)


def test_times_have_zones_or_are_utc(read):
    header = "time,topic,partition,value\n"
    found = [
        read(header + f"{first},t,0,5\n{second},t,0,7")
        for first, second in (
            ("2025-12-01T00:00:00Z", "2025-12-01 01:00"),
            ("2025-12-01T02:00+02:00", "2025-11-30T20:00:00-05:00"),
            (MONDAY * 1_000, MONDAY + 3_600),
        )
    ]
    assert all(one == found[0] for one in found)
    assert found[0].weights["t"] == [[5, 7]]


def test_missing_hours_are_assumed_from_other_days_and_named(read):
    week = [day + hour for day in range(7) for hour in range(24)]
    week[3 * 24 + 5] = week[3 * 24 + 6] = None
    found = read(rows([week, week]))
    assert found.weights["t"][0][3 * 24 + 5] == 8
    assert sum(found.unknown["t"][0]) == 2
    assert "unknown in 2 of 168 windows (2025-12-04 05:00 UTC, …)" in found.notes["t"][0]
    assert found.cycle(DAY).weights["t"][0][5] == sum(range(5, 12))
    assert found.cycle(DAY).names[:2] == ("00:00", "01:00")
    assert not any(found.cycle(DAY).unknown["t"][0])


def test_cycles_of_a_week_start_on_monday(read):
    found = read(rows([range(14 * 24 + 5)], start=MONDAY + 5 * 3_600)).cycle(WEEK)
    assert found.names[0] == "Mon 00:00"
    assert found.weights["t"][0][10] == 5 + (5 + 168)  # Mon 10:00, where the whole weeks begin
    with pytest.raises(InputError, match="a cycle has 168 windows, and only 48 are recorded"):
        read(rows([[1] * 48])).cycle(WEEK)


def test_new_partitions_have_the_mean_of_the_topic_before(read):
    found = read(rows([[10, 20, 30], [30, 40, 50], [None, None, 90]]))
    assert found.weights["t"][2] == [20, 30, 90]
    assert found.unknown["t"][2] == [True, True, False]
    assert found.notes["t"] == ("assumed: t-2 had the mean weight of t before the first sample",)


def test_equal_samples_count_once_and_contradictions_are_errors(read):
    text = rows([[5, 7]])
    assert read(text + "\n" + text.splitlines()[1]).weights["t"] == [[5, 7]]
    with pytest.raises(InputError, match=r"traffic:4: t-0 has two values at 2025-12.*, 5 and 6"):
        read(text + f"\n{MONDAY},t,0,6")
    with pytest.raises(InputError, match="overlap, because samples are 3600 s apart"):
        read(rows([[5, 7, 8]]) + f"\n{MONDAY + 60},t,0,6")


def test_samples_of_two_clusters_are_an_error(read):
    with pytest.raises(InputError, match="traffic:3: samples of two clusters, east and west"):
        read("cluster,time,topic,partition,value\neast,0,t,0,1\nwest,3600,t,0,1")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("time,topic,value\n0,t,1", "traffic:1: the columns must be time, topic, partition"),
        (rows([[1, -2]]), "traffic:3: expected a number from 0 to 9223372036854775807, got '-2'"),
        (rows([[1, 10**20]]), "traffic:3: expected a number .* got '1000000"),
        ("time,topic,partition,value\nnoon,t,0,1", "traffic:2: the time must be .*, got 'noon'"),
        ("time,topic,partition,value\n0,t,0", "traffic:2: expected 4 values, got 3"),
        (
            rows([[1, 2]]) + "\n9000000000,t,0,3",
            "traffic: .* windows of 3600 s, .* check the times",
        ),
        (rows([[1, 2]], step=7_200), "traffic: 0 windows of 3600 s, with samples 7200 s apart"),
        (rows([[1, 2]]) + f"\n{MONDAY},t,99999,3", "t-99999: only 2 partitions are shown"),
    ],
)
def test_damage_is_an_error_with_its_place(read, text, message):
    with pytest.raises(InputError, match=message):
        read(text)


def test_ten_thousand_windows_are_read(read):
    found = read(rows([[at % 97 for at in range(10_000)]], step=60), seconds=60)
    assert found.weights["t"] == [[at % 97 for at in range(10_000)]]
