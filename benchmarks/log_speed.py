"""Time and memory of ``kassay history`` for a generated broker log.

Usage: ``python -m benchmarks.log_speed [MEGABYTES] [SHARE]``. SHARE is the share of lines of the
group coordinator, by default 0.3; the others are those of partitions, replicas and snapshots.
"""

import random
import resource
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

_GROUPS, _CLIENTS = 200, 12
_SEED = 20261129
_OTHER_LINES = (
    (
        "INFO [UnifiedLog partition=orders-{n}, dir=/var/lib/kafka] Rolled new log segment at "
        "offset {m} in 2 ms. (kafka.log.UnifiedLog)"
    ),
    (
        "INFO [UnifiedLog partition=__consumer_offsets-{n}, dir=/var/lib/kafka] Deleting segments "
        "due to retention time 604800000ms breach: LogSegment({m}) (kafka.log.UnifiedLog)"
    ),
    (
        "INFO [ReplicaFetcher replicaId=1, leaderId=2, fetcherId=0] Node 2 disconnected. "
        "(org.apache.kafka.clients.NetworkClient)"
    ),
    (
        "INFO [GroupMetadataManager brokerId=1] Finished loading offsets and group metadata from "
        "__consumer_offsets-{n} in {m} milliseconds for epoch 7 "
        "(kafka.coordinator.group.GroupMetadataManager)"
    ),
    (
        "INFO [SnapshotGenerator id=1] Creating new KRaft snapshot file snapshot {m}-{n} "
        "(org.apache.kafka.image.publisher.SnapshotGenerator)"
    ),
)
_CLASS = "(kafka.coordinator.group.GroupCoordinator)"


def log_lines(share: float) -> Iterator[str]:
    """Yield lines of a broker of release 3.9 without end."""
    rng = random.Random(_SEED)
    members = {(g, c): _member(rng, c) for g in range(_GROUPS) for c in range(_CLIENTS)}
    generations = dict.fromkeys(range(_GROUPS), 0)
    now = datetime(2024, 5, 1, tzinfo=UTC)
    while True:
        now += timedelta(milliseconds=rng.randrange(40))
        stamp = f"[{now:%Y-%m-%d %H:%M:%S},{now.microsecond // 1000:03d}] "
        if rng.random() >= share / (share + 4 * (1 - share)):  # a rebalance has about four lines
            line = rng.choice(_OTHER_LINES)
            yield stamp + line.format(n=rng.randrange(50), m=rng.randrange(10**9))
            continue
        # Half of the rebalances are those of ten groups in storms.
        group = rng.randrange(10 if rng.random() < 0.5 else _GROUPS)
        client = rng.randrange(2 if group < 10 else _CLIENTS)
        yield from _rebalance(
            rng, stamp, members=members, generations=generations, group=group, client=client
        )


def _rebalance(
    rng: random.Random,
    stamp: str,
    *,
    members: dict[tuple[int, int], str],
    generations: dict[int, int],
    group: int,
    client: int,
) -> Iterator[str]:
    start = f"{stamp}INFO [GroupCoordinator 1]: "
    name, partition = f"orders-{group}", f"(__consumer_offsets-{group % 50})"
    old, generations[group] = generations[group], generations[group] + 1
    if rng.random() < 0.5:
        member = members[group, client]
        failed = f"Member {member} in group {name} has failed, removing it from the group"
        yield f"{start}{failed} {_CLASS}"
        reason = f"removing member {member} on heartbeat expiration"
    else:
        members[group, client] = member = _member(rng, client)
        yield (
            f"{start}Dynamic member with unknown member id joins group {name} in Stable state. "
            f"Created a new member id {member} and request the member to rejoin with this id. "
            f"{_CLASS}"
        )
        reason = (
            f"Adding new member {member} with group instance id None; client reason: need to "
            f"re-join with the given member-id: {member}"
        )
    yield (
        f"{start}Preparing to rebalance group {name} in state PreparingRebalance with old "
        f"generation {old} {partition} (reason: {reason}) {_CLASS}"
    )
    stable = f"Stabilized group {name} generation {old + 1} {partition} with 12 members"
    yield f"{start}{stable} {_CLASS}"
    yield (
        f"{start}Assignment received from leader {members[group, 0]} for group {name} for "
        f"generation {old + 1}. The group has 12 members, 0 of which are static. {_CLASS}"
    )


def _member(rng: random.Random, client: int) -> str:
    return f"consumer-{client}-{uuid.UUID(int=rng.getrandbits(128))}"


def write_log(path: Path, megabytes: int, share: float) -> None:
    """Write a generated log of the given size."""
    lines, rest = log_lines(share), megabytes * 10**6
    with path.open("w", encoding="utf-8") as stream:
        while rest > 0:
            block = "\n".join(next(lines) for _ in range(10_000)) + "\n"
            stream.write(block)
            rest -= len(block)


def main() -> None:
    """Generate the log, and print time and memory of the command."""
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    share = float(sys.argv[2]) if len(sys.argv) > 2 else 0.3
    with tempfile.TemporaryDirectory() as directory:
        log = Path(directory, "server.log")
        write_log(log, megabytes, share)
        begin = time.perf_counter()
        command = [sys.executable, "-m", "kassay", "history", str(log), "--format", "jsonl"]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        seconds = time.perf_counter() - begin
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        size = log.stat().st_size / 1e6
        print(
            f"{size:.0f} MB, {share:.0%} lines of the coordinator, {len(done.stdout.splitlines())} "
            f"groups: {seconds:.1f} s, processor {usage.ru_utime + usage.ru_stime:.1f} s, "
            f"{usage.ru_maxrss / 1024:.0f} MiB"
        )


if __name__ == "__main__":
    main()
