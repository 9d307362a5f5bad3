"""A port against the real class, on one group."""

from __future__ import annotations

import json
from dataclasses import dataclass

from kassay.experiments.counterexamples.shrinking import shrink
from kassay.reference.assignors import run_assignor
from kassay.reference.documents.json_codec import group_document
from kassay.reference.model.group import Group
from tests.conformance.upstream import Lists, Upstream, upstream_assign

ENDLESS_LIMIT = 1.5
"""Seconds the real class gets where the port has proven that it never returns..."""
ENDLESS_LIMIT_PER_PARTITION = 0.02
"""... and as many more for each partition of the group, for large ones do take long."""
RETURN_LIMIT = 60.0
"""Seconds it gets where the port says that it returns: far more than it can need."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a port or the real class makes of a group, as far as they must agree.

    Parameters
    ----------
    lists
        Each member's partitions in order, None if there is no assignment.
    failed
        Simple name of the exception's class, if it throws.
    terminated
        Whether it returns at all.
    """

    lists: Lists | None
    failed: str | None = None
    terminated: bool = True


@dataclass(frozen=True, slots=True)
class Checked:
    """Both answers on one group."""

    group: Group
    port: Answer
    real: Answer

    @property
    def agree(self) -> bool:
        """Whether they are the same, order of every list included."""
        return self.port == self.real

    def document(self) -> str:
        """One line of JSON: the group, and what either made of it."""
        return json.dumps(
            {
                "group": group_document(self.group),
                "port": _written(self.port),
                "real": _written(self.real),
            },
            ensure_ascii=False,
        )


def check(group: Group, name: str) -> Checked:
    """Run port and real class on a group.

    Parameters
    ----------
    group
        The rebalance.
    name
        An assignor that both have.
    """
    port = port_answer(group, name)
    patience = ENDLESS_LIMIT + ENDLESS_LIMIT_PER_PARTITION * group.partition_count
    limit = RETURN_LIMIT if port.terminated else patience
    return Checked(group, port, _real_answer(upstream_assign(group, name, limit=limit)))


def smallest_disagreement(group: Group, name: str) -> Checked:
    """Shrink a group on which the two differ, and show both answers on what is left."""
    return check(shrink(group, lambda smaller: not check(smaller, name).agree), name)


def port_answer(group: Group, name: str) -> Answer:
    """Run our port alone."""
    outcome = run_assignor(group, name)
    if outcome.livelock is not None:
        return Answer(None, terminated=False)
    if outcome.failed is not None:
        return Answer(None, failed=outcome.failed.java_class)
    assert outcome.assignment is not None
    return Answer(
        {
            member: [[tp.topic, tp.partition] for tp in partitions]
            for member, partitions in outcome.assignment.items()
        }
    )


def _real_answer(upstream: Upstream) -> Answer:
    return Answer(upstream.lists, failed=upstream.failed, terminated=upstream.terminated)


def _written(answer: Answer) -> object:
    if not answer.terminated:
        return {"terminated": False}
    return {"failed": answer.failed} if answer.lists is None else {"assignment": answer.lists}
