"""Weights per window from recorded traffic: right, assumed with a condition, or refused."""

import json

import pytest

from kassay.experiments.sources.build_group import ImportOptions, with_weights
from kassay.experiments.sources.weight_windows import DAY, WEEK, read_weight_windows
from kassay.reference.documents.json_codec import parse_group
from kassay.reference.model.errors import InputError
from kassay.reference.model.group_remarks import condition

MONDAY = 1_764_547_200  # 2025-12-01 00:00 UTC
HEADER = "time,topic,partition,value\n"


def rows(*values, step=3_600, start=MONDAY):
    """Return CSV with values by partition of the topic t; None has no row."""
    table = ((at, n, one) for n, row in enumerate(values) for at, one in enumerate(row))
    lines = [f"{start + at * step},t,{n},{one}" for at, n, one in table if one is not None]
    return HEADER + "\n".join(lines)


def matrix(*values, **labels):
    """Return the series of an answer of query_range, with hourly values of the topic t."""
    return [
        {
            "metric": {"topic": "t", "partition": str(number), **labels},
            "values": [[MONDAY + at * 3_600, one] for at, one in enumerate(row) if one],
        }
        for number, row in enumerate(values)
    ]


def answer(series, status="success", kind="matrix"):
    data = {"resultType": kind, "result": series}
    return json.dumps({"status": status, "error": "timeout", "data": data})


@pytest.fixture
def read(tmp_path):
    def read(text, **options):
        path = tmp_path / "traffic"
        path.write_text(text)
        return read_weight_windows(path, **options)

    return read


def test_values_of_a_window_are_summed_exactly(read):
    found = read(rows([1, 2, 3, 4, 5, 6, 7, 8], [10**18] * 8, step=900))
    assert found.weights["t"] == [[10, 26], [4 * 10**18] * 2]
    assert found.names == ("2025-12-01 00:00", "2025-12-01 01:00")
    assert (found.start, found.seconds) == (MONDAY, 3_600)


@pytest.mark.parametrize(
    "times",
    [
        ("2025-12-01T00:00:00Z", "2025-12-01 01:00"),
        ("2025-12-01T02:00+02:00", "2025-11-30T20:00:00-05:00"),
        (MONDAY * 1_000, MONDAY + 3_600),
    ],
)
def test_times_have_zones_or_are_utc(read, times):
    assert read(HEADER + f"{times[0]},t,0,5\n{times[1]},t,0,7") == read(rows([5, 7]))


def text_commit(hour, offset, group="shop", millis=0):
    time = (MONDAY + hour * 3_600) * 1_000 + millis
    return (
        f"[{group},t,0]::OffsetAndMetadata(offset={offset}, metadata=, commitTimestamp={time}, x)"
    )


def json_commit(hour, offset, group="shop", millis=0):
    key = {"version": 1, "data": {"group": group, "topic": "t", "partition": 0}}
    time = (MONDAY + hour * 3_600) * 1_000 + millis
    value = {"version": 4, "data": {"offset": offset, "commitTimestamp": time}}
    return json.dumps({"key": key, "value": value}, separators=(",", ":"))


@pytest.mark.parametrize(("commit", "end"), [(text_commit, "\n"), (json_commit, "")])
def test_commits_of_a_group_show_what_it_consumes(read, commit, end):
    records = [commit(0, 3), commit(0, 5, millis=400), commit(1, 15), commit(2, 45)]
    found = read(end.join(records))
    assert found.weights["t"] == [[10, 30]]
    assert "weights are consumed messages, from committed offsets" in found.remarks
    with pytest.raises(InputError, match="two groups, 'other' and 'shop'"):
        read(end.join([*records, commit(3, 46, group="other")]))


def test_other_records_between_commits(read):
    group = '{"key":{"version":2,"data":{"group":"shop"}},"value":null}'
    assert read(json_commit(0, 5) + group + json_commit(1, 15)).weights["t"] == [[10]]
    assert read(f"{text_commit(0, 5)}\n[shop,t,0]::null\n{text_commit(1, 15)}").weights["t"] == [
        [10]
    ]
    with pytest.raises(InputError, match="traffic:2: expected a committed offset, got 'x'"):
        read(f"{text_commit(0, 5)}\nx\n{text_commit(1, 15)}")


def test_missing_hours_are_assumed_from_other_days_and_named(read):
    week = [day + hour for day in range(7) for hour in range(24)]
    week[3 * 24 + 5] = week[3 * 24 + 6] = None
    found = read(rows(week, week))
    assert found.weights["t"][0][3 * 24 + 5] == 8
    assert sum(found.unknown["t"][0]) == 2
    assert found.cycle(DAY).weights["t"][0][5] == sum(range(5, 12))
    assert found.cycle(DAY).names[:2] == ("00:00", "01:00")
    counter, sums, gaps = found.cycle(DAY).notes({"t": 2})
    assert "almost never fall, are increases and not a counter" in counter
    assert sums == "weights are sums of 7 cycles"
    assert "unknown in 2 of 168 windows, such as 2025-12-04 05:00 UTC" in gaps


def test_cycles_of_a_week_start_on_monday(read):
    found = read(rows(range(14 * 24 + 5), start=MONDAY + 5 * 3_600)).cycle(WEEK)
    assert found.names[0] == "Mon 00:00"
    assert found.weights["t"][0][10] == 5 + (5 + 168)  # Mon 10:00, where the whole weeks begin
    with pytest.raises(InputError, match="requires 168 windows, but 48 are recorded"):
        read(rows([1] * 48)).cycle(WEEK)


def test_increases_of_prometheus_are_those_before_the_time(read):
    found = read(answer(matrix(["4.5", "5.5", "NaN", "2e3"], ["1", "2", None, "0"])))
    assert found.start == MONDAY - 3_600
    assert found.weights["t"] == [[4, 6, 670, 2_000], [1, 2, 1, 0]]
    assert found.unknown["t"] == [[False, False, True, False]] * 2


def test_end_offsets_may_be_reset_and_miss_samples(read):
    offsets = [
        [str(10**18), str(10**18 + 7), "5", "9", "9", "20"],
        ["0", "10", "20", None, None, "90"],
    ]
    found = read(answer(matrix(*offsets, __name__="kafka_topic_partition_current_offset")))
    assert [found.weights["t"][0][0], found.weights["t"][1][1]] == [7, 10]
    assert found.unknown["t"] == [[at == 1 for at in range(5)], [at > 1 for at in range(5)]]
    assert "t-0 was reset from 1000000000000000007 to 5 at 2025-12-01 02" in found.resets["t"]


def test_growth_between_samples_is_spread_over_windows(read):
    times = (("00:00", 100), ("00:50", 200), ("01:10", 220), ("02:00", 320))
    samples = [
        {"time": f"2025-12-01T{time}Z", "cluster": "c", "end_offsets": {"t": [end, 3 * end, None]}}
        for time, end in times
    ]
    assert read("\n".join(map(json.dumps, samples))).weights["t"] == [[110, 110], [330, 330]]


def test_groups_get_windows_and_conditions(read):
    found = read(rows([10, 20, 30], [30, 40, None], [None, None, 90]))
    group = parse_group({"topics": {"t": 4}, "members": [{"id": "m", "topics": ["t"]}]})
    weighted = with_weights(group, ImportOptions(weight_windows=found))
    third, fourth = weighted.topics[0].profiles[2:]
    assert (third, fourth) == ((20, 30, 90), (20, 30, 52))
    assert weighted.windows.names == found.names
    assert condition(weighted) == (
        "t-2 and 1 more had the mean weight of the topic before the first sample and the weights "
        "that are unknown in 1 of 3 windows, such as 2025-12-01 02:00 UTC, are means of known ones"
    )
    with pytest.raises(InputError, match="has 2 partitions, but 3 weights"):
        with_weights(
            parse_group({"topics": {"t": 2}, "members": []}), ImportOptions(weight_windows=found)
        )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (rows([5, 7]) + f"\n{MONDAY},t,0,6", r"traffic:4: t-0 has two values at 2025.*, 5 and 6"),
        (rows([5, 7, 8, 9]) + f"\n{MONDAY + 60},t,0,6", r"t-0: samples overlap at"),
        ("cluster," + HEADER + "a,0,t,0,1\nb,0,u,0,1", "traffic:3: .* two clusters, 'a' and 'b'"),
        (answer(matrix([1], cluster="a") + matrix([1], cluster="b")), "two clusters, 'a' and 'b'"),
        (answer(matrix([1], env="a") + matrix([2], env="b")), r"t-0 has two values .* 1 and 2"),
        (
            "time,topic,value\n0,t,1",
            "traffic:1: expected weights as JSON, or CSV with columns time",
        ),
        (rows([1, -2]), "traffic:3: expected a number from 0 to 9223372036854775807, got '-2'"),
        (rows([1, 10**20]), "traffic:3: expected a number .* got '1000000"),
        (HEADER + "noon,t,0,1", "traffic:2: the time must be .*, got 'noon'"),
        (HEADER + "nan,t,0,1", "traffic:2: the time must be .*, got 'nan'"),
        (HEADER + "0,t,1.5,1", "traffic:2: expected an integer .*, got '1.5'"),
        (HEADER + "0,t,0", "traffic:2: expected 4 values, got 3"),
        (rows([1, 2]) + "\n9000000000,t,0,3", "traffic: .* windows of 3600 s, .* check the times"),
        (rows([1, 2], step=7_200), "traffic: .* 0 windows of 3600 s, with samples 7200 s apart"),
        (rows([1, 2]) + f"\n{MONDAY},t,99999,3", "t-99999: only 2 partitions of the topic"),
        (answer([], status="error"), "Prometheus reports: 'timeout'"),
        (answer([], kind="vector"), "resultType: must be matrix"),
        (answer(matrix([1, "x"])), r"data.result\[0\].values\[1\]: expected a number .* got 'x'"),
        (answer(matrix([1], partition="x")), "expected an integer .* got 'x'"),
    ],
)
def test_damage_is_an_error_with_its_place(read, text, message):
    with pytest.raises(InputError, match=message):
        read(text)


def test_ten_thousand_windows_are_read_and_equal_samples_count_once(read):
    text = rows([at % 97 for at in range(10_000)], step=60)
    found = read(text + f"\n{MONDAY},t,0,0", seconds=60)
    assert found.weights["t"] == [[at % 97 for at in range(10_000)]]
