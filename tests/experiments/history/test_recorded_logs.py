"""History of recorded logs, compared with the events that were played (tests/data/logs)."""

import json
from pathlib import Path

import pytest

from kassay.experiments.history.log_messages import client_of
from kassay.experiments.history.log_rebalances import LogRebalance
from kassay.experiments.history.log_summary import summarise_logs

LOGS = Path(__file__).parents[2] / "data" / "logs"
BROKER, CLIENTS, NATIVE = (
    LOGS / f"{name}.log" for name in ("broker-4.4", "java-client-4.4", "librdkafka")
)
PLAYED = json.loads((LOGS / "played.json").read_text())
CLASSIC = ("range", "cooperative-sticky")


def history(*files: Path) -> dict[str, dict[int, LogRebalance]]:
    found: dict[str, dict[int, LogRebalance]] = {}

    def add(one: LogRebalance) -> None:
        assert one.number is not None
        assert one.number not in found.setdefault(one.group, {})
        found[one.group][one.number] = one

    summarise_logs(files, on_rebalance=add)
    return found


@pytest.mark.parametrize("group", ["range", "cooperative-sticky", "uniform"])
def test_the_log_of_the_broker_has_the_played_events(group: str) -> None:
    found, previous = history(BROKER)[group], 0
    events = [(number, event.split()) for name, number, event in PLAYED if name == group]
    for number, (kind, client) in events:
        if kind == "restart":
            assert number == previous  # a static member restarts without a rebalance
            continue
        first = found[previous + 1] if group in CLASSIC else found[number]
        changes = {"join": first.joined, "leave": first.left, "kill": first.expired}
        if kind in changes:
            assert len(changes[kind]) == 1
            assert sum(map(len, (first.joined, first.left, first.expired))) == 1
            if group in CLASSIC:
                name = "static-1" if client == "s1" else client
                assert client_of(changes[kind][0]) == name
        causes = {"join": ("join", "restart"), "leave": ("leave",), "kill": ("session timeout",)}
        assert str(first.cause) in causes.get(kind, ("subscription",))
        # The second generation of a cooperative rebalance.
        assert all(str(found[n].cause) == "cooperative" for n in range(first.number + 1, number))
        assert group != "cooperative-sticky" or number - previous <= 2
        previous = number
    assert sorted(found) == list(range(min(found), max(found) + 1))


def test_the_logs_of_the_clients_have_the_generations_of_the_broker() -> None:
    broker, clients = history(BROKER), history(CLIENTS)
    for group in ("range", "cooperative-sticky", "uniform"):
        last = max(number for name, number, _ in PLAYED if name == group)
        # The last subscription of the group uniform changed no assignment, so no client noticed it.
        expected = [number for number in broker[group] if number <= last]
        assert list(clients[group]) == [n for n in expected if (group, n) != ("uniform", 11)]


def test_the_logs_of_the_clients_have_the_causes_of_the_broker() -> None:
    broker, clients = history(BROKER), history(CLIENTS)
    for group, found in clients.items():
        for number, one in found.items():
            if (group, number) in (("range", 10), ("range", 11)):
                assert str(one.cause) == "other member"  # the client k1 has another log
                continue
            known = str(broker[group][number].cause)
            # Member ids of the consumer protocol do not show a restart to the broker.
            assert str(one.cause) in (known, "restart" if known == "join" else known)


def test_the_log_of_librdkafka_has_the_generations_of_the_broker() -> None:
    broker, native = history(BROKER)["native"], history(NATIVE)["native"]
    assert list(native) == [1, 2, 3, 4, 5]
    assert list(broker) == [1, 2, 3, 4, 5, 6]  # the last one is empty
    assert [str(native[n].cause) for n in (1, 2, 4, 5)] == ["join", "join", "poll timeout", "leave"]
    assert native[5].left == ["n1#consumer-3"]


def test_the_log_of_librdkafka_has_the_epochs_of_the_consumer_protocol() -> None:
    found = history(LOGS / "librdkafka-consumer.log")["native848"]
    events = {2: "join n0", 3: "join n1", 4: "join n2", 5: "leave n1", 6: "leave n2"}
    events |= {7: "join n3", 9: "poll timeout n3", 10: "leave n0"}  # 8 has no member that noticed
    shown = {
        number: f"{one.cause} {(one.member or '').partition('#')[0]}"
        for number, one in found.items()
    }
    assert shown == events
    assert all(str(one.protocol) == "consumer" for one in found.values())
    assert max(one.not_stable_ms for one in found.values() if one.number != 2) < 1_100


def test_records_of_the_console_consumer_without_line_ends_are_read() -> None:
    generations = history(LOGS / "groups-3.9.log")["shop"]
    assert {number: one.members for number, one in generations.items()} == {
        0: 0, 1: 1, 2: 2, 3: 1, 4: 0
    }  # fmt: skip
    [record] = summarise_logs([LOGS / "offsets-3.9.log"])
    assert (record["id"], record["protocol"], record["rebalances"]) == ("shop", None, 0)
    commits = record["commits"]
    assert (commits["commits"], commits["longest_pause_seconds"]) == (14, 1.979)
    assert commits["from"] == "2026-11-29T21:58:44.703"
    [both] = summarise_logs([LOGS / f"{name}-3.9.log" for name in ("groups", "offsets")])
    assert both["commits"] == commits
    assert both["rebalances"] == 5


@pytest.mark.parametrize(
    "text",
    [
        "[a,b,orders,0]::OffsetAndMetadata(offset=5, metadata=, commitTimestamp={})",
        "[a,b,orders,0]::[OffsetMetadata[5,NO_METADATA],CommitTime {},ExpirationTime 1]",
    ],
)
def test_commits_of_older_releases_are_read(text: str, tmp_path: Path) -> None:
    times = (1714564800250, 1714564860250, 1714564920750)
    file = tmp_path / "offsets.txt"
    file.write_text("".join(f"{text.format(time)}\n[a,b,orders,1]::NULL\n" for time in times))
    [record] = summarise_logs([file])
    assert record["id"] == "a,b"
    assert record["commits"]["longest_pause_seconds"] == 60.5
    assert record["commits"]["pause_from"] == "2024-05-01T12:01:00.250"


def test_all_logs_together_have_the_rebalances_of_the_broker() -> None:
    broker, together = history(BROKER), history(CLIENTS, NATIVE, BROKER)
    for group, found in broker.items():
        assert list(together[group]) == list(found)
        for number, one in found.items():
            assert together[group][number].started == one.started
            assert together[group][number].members == one.members
