"""Groups with stateful tasks, threads of processes, standbys and tags: brute force and proofs."""

import os
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations, combinations_with_replacement, product

import pytest

from kassay.reference.model.errors import InputError, UsageError
from kassay.reference.model.group import Client, Group, Member, Topic
from kassay.solver.certificate.check import certificate_errors
from kassay.solver.certificate.documents import certificate_document, parse_certificate
from kassay.solver.evaluation import HostType, best_standbys
from kassay.solver.solve import solve

ORDER = (
    *("sum_of_squares", "stateful_sum_of_squares", "movement"),
    *("missing_tag_values", "standby_moves"),
)
LEVELS = (*ORDER, "topic_spread", "host_sum_of_squares")
Task = tuple[str, int]
_RANDOM = int(os.environ.get("RANDOM_APPLICATIONS", "0"))
"""Number of random applications of `make exhaustive`, which also checks all tiny ones."""


def _application(
    topics: Sequence[Topic],
    threads: Sequence[int],
    held: Sequence[Sequence[Task]],
    tags: Sequence[dict[str, str]],
    capacities: Sequence[int | None] = (),
) -> Group:
    """Return the group of an application: a member per thread, and a host per process."""
    names = tuple(topic.name for topic in topics)
    members = [
        Member(
            f"p{process}-{thread}",
            names,
            holds=held[process],
            tags=tuple(tags[process].items()),
            client=Client(host=f"p{process}"),
        )
        for process, count in enumerate(threads)
        for thread in range(count)
    ]
    limits = (*capacities, *[None] * len(members))
    limited = (replace(one, capacity=limits[at]) for at, one in enumerate(members))
    return Group(tuple(topics), tuple(limited))


def _standby_costs(
    process: int, standbys: int, task: Task, held: Sequence[Sequence[Task]], tags: Sequence[dict]
) -> tuple[int, int]:
    """Compare all sets of processes with a standby of a task that is active on a process."""
    others = [one for one in range(len(tags)) if one != process]
    count = min(standbys, len(others))
    values = {key: {t[key] for t in tags if key in t} for t in tags for key in t}
    costs = []
    for chosen in combinations(others, count):
        found = [tags[one] for one in (process, *chosen)]
        missing = sum(
            min(1 + count, len(known)) - len({one[key] for one in found if key in one})
            for key, known in values.items()
        )
        costs.append((missing, sum(task not in held[one] for one in chosen)))
    return min(costs)


def _best(
    group: Group,
    levels: Sequence[str],
    threads: Sequence[int],
    held: Sequence[Sequence[Task]],
    tags: Sequence[dict[str, str]],
) -> list[int]:
    """Return the optimum of the levels over all assignments of tasks to threads."""
    process_of = [process for process, count in enumerate(threads) for _ in range(count)]
    tasks = [((t.name, n), t) for t in group.topics for n in range(t.partitions)]
    known = {task for one in held for task in one}
    standby = {
        (task, process): _standby_costs(process, topic.standbys, task, held, tags)
        for task, topic in tasks
        if topic.is_stateful
        for process in range(len(threads))
    }
    results = []
    for places in product(range(len(process_of)), repeat=len(tasks)):
        values = dict.fromkeys(LEVELS, 0)
        for thread, member in enumerate(group.members):
            mine = [
                topic for place, (_, topic) in zip(places, tasks, strict=True) if place == thread
            ]
            if member.capacity is not None and len(mine) > member.capacity:
                break
            values["sum_of_squares"] += len(mine) ** 2
            values["stateful_sum_of_squares"] += sum(t.is_stateful for t in mine) ** 2
            for topic in group.topics:
                values["topic_spread"] += mine.count(topic) ** 2
        else:
            factors = [2 // count for count in threads] if 2 in threads else [1] * len(threads)
            for process in range(len(threads)):
                load = sum(process_of[place] == process for place in places)
                values["host_sum_of_squares"] += load**2 * factors[process]
            for place, (task, topic) in zip(places, tasks, strict=True):
                process = process_of[place]
                values["movement"] += task in known and task not in held[process]
                if topic.is_stateful:
                    missing, moves = standby[task, process]
                    values["missing_tag_values"] += missing
                    values["standby_moves"] += moves
            results.append([values[name] for name in levels])
    return min(results)


def _check(group: Group, levels: Sequence[str], best: list[int], label: object) -> None:
    solution = solve(group, levels=levels)
    assert [level.value for level in solution.levels] == best, label
    assert solution.is_optimal, label
    assert solution.assignment is not None
    assert solution.certificate is not None
    assert not list(certificate_errors(group, solution.assignment, solution.certificate)), label


def test_standbys_with_too_many_choices_are_an_error() -> None:
    tags = [{"id": str(process)} for process in range(60)]
    group = _application([Topic("t0", 2, is_stateful=True, standbys=3)], [1] * 60, [[]] * 60, tags)
    with pytest.raises(UsageError, match=r"topics\.t0\.standbys: 3 standbys can be placed on 60 "):
        solve(group, levels=["standby_moves"])


def test_the_optimum_of_stateful_tasks_equals_brute_force() -> None:
    for seed in range(_RANDOM or 30):
        rng = random.Random(seed)
        threads = [rng.randint(1, 2) for _ in range(rng.randint(1, 3))]
        topics = []
        for index in range(rng.randint(1, 2)):
            is_stateful = rng.random() < 0.7
            standbys = rng.randint(0, 2) if is_stateful else 0
            size = rng.randint(1, 4 - 2 * (index > 0 or sum(threads) > 4))
            topics.append(Topic(f"t{index}", size, is_stateful=is_stateful, standbys=standbys))
        tasks = [(t.name, n) for t in topics if t.is_stateful for n in range(t.partitions)]
        held = [[task for task in tasks if rng.random() < 0.4] for _ in threads]
        keys = rng.sample(["zone", "cluster"], rng.randint(0, 2))
        tags = [{key: rng.choice("ab") for key in keys if rng.random() < 0.9} for _ in threads]
        total, capacities = sum(topic.partitions for topic in topics), []
        if tasks and rng.random() < 0.3:
            capacities = [rng.choice([1, 2, None]) for _ in range(sum(threads))]
            if sum(total if one is None else one for one in capacities) < total:
                capacities = []
        group = _application(topics, threads, held, tags, capacities)
        levels: Sequence[str] = ORDER
        if rng.random() < 0.5:
            levels = rng.sample(LEVELS, rng.randint(1, len(LEVELS)))
        _check(group, levels, _best(group, levels, threads, held, tags), (seed, levels))


def _tiny_applications() -> Iterator[tuple[list[Topic], tuple[int, ...], list[list[Task]], list]]:
    """Yield all applications with at most 3 stateful and 2 stateless tasks and 4 threads."""
    for threads in ((1,), (2,), (1, 1), (1, 2), (2, 2), (1, 1, 1), (1, 1, 2)):
        processes = range(len(threads))
        sets = [c for n in range(len(threads) + 1) for c in combinations(processes, n)]
        zones = [[{} for _ in threads]]
        if len(threads) == 3:
            zones.append([{"zone": zone} for zone in "aab"])
        for stateful, stateless in product(range(4), range(3)):
            for holders in combinations_with_replacement(sets, stateful):
                for standbys in range(len(threads) if stateful else 1):
                    topics = [
                        Topic("s", stateful, is_stateful=True, standbys=standbys),
                        Topic("n", stateless),
                    ]
                    held = [
                        [("s", task) for task, one in enumerate(holders) if process in one]
                        for process in processes
                    ]
                    for tags in zones:
                        yield topics, threads, held, tags


def test_the_optimum_of_tiny_applications_equals_brute_force() -> None:
    for number, (topics, threads, held, tags) in enumerate(_tiny_applications()):
        if _RANDOM or number % 397 == 0:
            group = _application(topics, threads, held, tags)
            _check(group, ORDER, _best(group, ORDER, threads, held, tags), number)


def test_forged_certificates_of_stateful_tasks_are_refused() -> None:
    topics = [Topic("s", 4, is_stateful=True, standbys=1), Topic("n", 2)]
    held = [[("s", 0), ("s", 1)], [("s", 2), ("s", 3)], []]
    zones = [{"zone": zone} for zone in "aab"]
    group = _application(topics, (1, 1, 1), held, zones)
    solution = solve(group, levels=ORDER)
    certificate, assignment = solution.certificate, solution.assignment
    assert certificate is not None
    assert assignment is not None
    assert str(solution.proof) == "proven by certificate"
    assert parse_certificate(certificate_document(certificate)) == certificate
    # A higher price of the sink, the last node, is valid: the arc of its host is full.
    for index in range(len(certificate.node_prices) - 1):
        prices = list(certificate.node_prices)
        prices[index] += 10**40
        forged = replace(certificate, node_prices=tuple(prices))
        assert list(certificate_errors(group, assignment, forged))
    for index, claim in enumerate(certificate.claims):
        raised = replace(claim, bound=claim.bound + 1, value=claim.value + 1)
        claims = (*certificate.claims[:index], raised, *certificate.claims[index + 1 :])
        assert list(certificate_errors(group, assignment, replace(certificate, claims=claims)))
    without_zones = _application(topics, (1, 1, 1), [held[1], held[0], []], zones)
    assert list(certificate_errors(without_zones, assignment, certificate))


def test_standbys_of_a_stateless_topic_are_an_error() -> None:
    with pytest.raises(InputError, match="topic 't': standbys must be at least 0, and 0 for a"):
        Topic("t", 1, standbys=1)


def test_a_standby_goes_to_another_zone():
    hosts = [HostType((("zone", zone),), zone == "east") for zone in ("east", "east", "west")]
    assert best_standbys(hosts, hosts[0], 1) == (0, 1)
