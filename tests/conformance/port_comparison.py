"""Comparison of a port with Kafka's class on one group."""

from __future__ import annotations

import json
from dataclasses import dataclass

from kassay.experiments.counterexamples.shrinking import shrink, smaller_groups
from kassay.reference.assignors import run_assignor
from kassay.reference.documents.json_codec import group_document
from kassay.reference.model.group import Group
from tests.conformance.upstream import Lists, UpstreamResult, upstream_assign

NONTERMINATION_LIMIT = 1.5
"""Time limit in seconds of Kafka's class if the port has proven non-termination."""
NONTERMINATION_LIMIT_PER_PARTITION = 0.02
"""Additional seconds per partition of the group."""
RETURN_LIMIT = 60.0
"""Time limit in seconds of Kafka's class if the port terminates."""


@dataclass(frozen=True, slots=True)
class AssignorOutput:
    """Result of a port or of Kafka's class.

    ``lists`` are the partitions per member in order, ``failed`` is the simple name of the
    exception's class.
    """

    lists: Lists | None
    failed: str | None = None
    terminated: bool = True


@dataclass(frozen=True, slots=True)
class PortComparison:
    """Results of both on one group."""

    group: Group
    port: AssignorOutput
    real: AssignorOutput

    @property
    def agree(self) -> bool:
        return self.port == self.real

    def document(self) -> str:
        """Return the group and both results as one line of JSON."""
        return json.dumps(
            {
                "group": group_document(self.group),
                "port": _document(self.port),
                "real": _document(self.real),
            },
            ensure_ascii=False,
        )


def compare_port(group: Group, name: str) -> PortComparison:
    """Run the port and Kafka's class on a group."""
    port = port_output(group, name)
    limit = RETURN_LIMIT
    if not port.terminated:
        limit = NONTERMINATION_LIMIT + NONTERMINATION_LIMIT_PER_PARTITION * group.partition_count
    return PortComparison(group, port, _real_output(upstream_assign(group, name, limit=limit)))


def shrink_mismatch(group: Group, name: str) -> PortComparison:
    """Shrink a group on which the results differ, and return the results on the small group."""
    shrunk = shrink(
        group, lambda one: not compare_port(one, name).agree, smaller_groups, attempts=5_000
    )
    return compare_port(shrunk, name)


def port_output(group: Group, name: str) -> AssignorOutput:
    """Run the port."""
    outcome = run_assignor(group, name)
    if outcome.livelock is not None:
        return AssignorOutput(None, terminated=False)
    if outcome.failed is not None:
        return AssignorOutput(None, failed=outcome.failed.java_class)
    assert outcome.assignment is not None
    return AssignorOutput(
        {
            member: [[tp.topic, tp.partition] for tp in partitions]
            for member, partitions in outcome.assignment.items()
        }
    )


def _real_output(upstream: UpstreamResult) -> AssignorOutput:
    return AssignorOutput(upstream.lists, failed=upstream.failed, terminated=upstream.terminated)


def _document(output: AssignorOutput) -> object:
    if not output.terminated:
        return {"terminated": False}
    return {"failed": output.failed} if output.lists is None else {"assignment": output.lists}
