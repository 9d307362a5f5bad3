"""Random documents of Connect clusters and Streams applications."""

from collections.abc import Mapping
from random import Random
from typing import Any
from uuid import UUID

Document = dict[str, Any]


def random_cluster(rng: Random) -> Document:
    """Return a sequence of 2 to 9 events of a Connect cluster."""
    workers = [f"w{rng.getrandbits(rng.choice([8, 60])):x}" for _ in range(rng.randint(1, 6))]
    workers = sorted(set(workers))
    connectors = {f"c{rng.randint(0, 999)}": rng.randint(0, 9) for _ in range(rng.randint(1, 5))}
    delay = rng.choice([0, 1, 50, 20_000, 40_000, 300_000, rng.randint(2, 10**7)])
    steps: list[Document] = []
    for _ in range(rng.randint(2, 9)):
        steps.append({"workers": list(workers), "connectors": dict(connectors)})
        if rng.random() < 0.8:
            steps[-1]["wait_ms"] = rng.choice([0, 1000, 30_000, 600_000])
        if rng.random() < 0.5:
            steps[-1]["until_stable"] = rng.random() < 0.5
        if rng.random() < 0.1:
            steps[-1]["new_leader"] = True
        if rng.random() < 0.1:
            steps[-1]["running"] = _running(rng, workers, connectors)
        _change_cluster(rng, workers, connectors)
    return {"kind": "connect", "scheduled_rebalance_max_delay_ms": delay, "steps": steps}


def _change_cluster(rng: Random, workers: list[str], connectors: dict[str, int]) -> None:
    event = rng.random()
    if event < 0.35 and len(workers) > 1:
        workers.pop(rng.randrange(len(workers)))
    if event < 0.2 or event > 0.7:
        workers.append(f"w{rng.getrandbits(60):x}")
    if rng.random() < 0.3:
        connectors[f"k{rng.randint(0, 99)}"] = rng.randint(0, 9)
    if rng.random() < 0.2:
        connectors.pop(rng.choice(sorted(connectors)), None) if connectors else None
    if rng.random() < 0.2 and connectors:
        connectors[rng.choice(sorted(connectors))] = rng.randint(0, 9)


def _running(rng: Random, workers: list[str], connectors: Mapping[str, int]) -> Document:
    """Return entries of some workers, some of them twice or of no connector."""
    tasks = [f"{name}-{number}" for name, count in connectors.items() for number in range(count)]
    names = [*connectors, "gone"]
    return {
        worker: {
            "connectors": rng.sample(names, rng.randint(0, len(names))),
            "tasks": rng.sample(tasks, rng.randint(0, len(tasks))),
        }
        for worker in workers
        if rng.random() < 0.5
    }


def random_application(rng: Random) -> Document:
    """Return a Streams application whose processes have some state."""
    subtopologies: Document = {}
    for number in range(rng.randint(1, 4)):
        partitions = rng.randint(1, rng.choice([3, 8, 14]))
        subtopologies[str(number)] = {
            "partitions": partitions,
            "stateful": rng.random() < 0.75,
            "end_offsets": [rng.choice([0, 5_000, 50_000, 10**9])] * partitions,
        }
    stateful = [
        f"{name}_{number}"
        for name, fields in subtopologies.items()
        if fields["stateful"]
        for number in range(fields["partitions"])
    ]
    zones, racks = rng.randint(1, 4), rng.randint(1, 3)
    processes = [
        {
            "id": str(UUID(int=rng.getrandbits(128))),
            "threads": rng.choice([1, 2, 2, 2, 3, 8]),
            "tags": {"zone": f"z{rng.randrange(zones)}", "rack": f"r{rng.randrange(racks)}"},
            "active": [],
            "standby": [],
            "lags": {},
        }
        for _ in range(rng.randint(1, 8))
    ]
    for task in stateful:
        _place(rng, task, processes)
    config = {
        "acceptable_recovery_lag": rng.choice([0, 10_000, 10_000, 2**63 - 1]),
        "max_warmup_replicas": rng.choice([1, 2, 2, 5]),
        "num_standby_replicas": rng.choice([0, 0, 1, 1, 2, 3]),
        "rack_aware_assignment_tags": rng.choice([[], [], ["zone"], ["zone", "rack"]]),
    }
    return {
        "kind": "streams",
        "subtopologies": subtopologies,
        "config": config,
        "processes": processes,
    }


def _place(rng: Random, task: str, processes: list[Document]) -> None:
    """Give a task an owner, copies and leftover state at random."""
    if rng.random() < 0.85:
        rng.choice(processes[: rng.choice([1, 2, 8])])["active"].append(task)
    for process in processes:
        if task not in process["active"] and rng.random() < 0.25:
            if rng.random() < 0.5:
                process["standby"].append(task)
            process["lags"][task] = rng.choice([0, 5, 10_000, 10_001, 70_000, 70_000, 10**9])
