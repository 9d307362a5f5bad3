"""Write texts for pull requests: a Markdown table of two assignors, or a JUnit test.

They use the JSON records of `kassay.experiments.comparison.compare.compare_assignors`.
"""

import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from kassay.experiments.implementations.assignor_names import JavaClass
from kassay.experiments.plotting.page_templates import environment
from kassay.experiments.report.study_tables import mean_interval
from kassay.experiments.study.configuration import commit
from kassay.reference.model.assignment import ownership
from kassay.reference.model.group import Group

_MEASURES = {
    "sum_of_squares": "sum of squared loads",
    "makespan": "maximum load",
    "movement": "moves",
    "unnecessary_moves": "unnecessary moves",
}
MAX_TESTS = 10
"""Maximum number of test methods in a JUnit test. The smallest groups come first."""


@dataclass(frozen=True, slots=True)
class ComparedGroup:
    """Group with the compared results of one or two assignors."""

    group: Group
    record: Mapping[str, Any]

    def value(self, position: int, measure: str) -> Any:
        """Return the value of a measure for an assignor, or None without an assignment."""
        entry = self.record["comparisons"][position]
        value = entry.get(measure) if entry["ending"] == "ok" else None
        return value["value"] if isinstance(value, Mapping) else value

    def rank(self, position: int) -> tuple[Any, Any] | None:
        """Return the imbalance and the moves of an assignor or of the optimum.

        None means that the assignor has no assignment.
        """
        optimum = self.record["optimum"]
        if position == len(self.record["comparisons"]):
            return optimum["imbalance"], optimum["movement"]
        imbalance = self.value(position, optimum["measure"])
        return None if imbalance is None else (imbalance, self.value(position, "movement"))

    @property
    def size(self) -> tuple[int, int, str]:
        """Return a sort key of the group: numbers of members and partitions, then the id."""
        return len(self.group.members), self.group.partition_count, self.group.id or ""


def markdown_table(
    compared: Sequence[ComparedGroup], *, after: str, before: str, command: Sequence[str]
) -> str:
    """Write the comparison of two assignors as Markdown, in at most 25 lines.

    ``after`` is the first assignor, ``before`` the second one. A group on which one of these has no
    assignment counts only as failed.
    """
    pairs = [one for one in compared if None not in (one.rank(0), one.rank(1))]
    worse = [one for one in pairs if (one.rank(0) or ()) > (one.rank(1) or ())]
    smallest = min(worse, key=lambda one: one.size, default=None)
    return _render(
        "pull_request.md.j2",
        command,
        after=after,
        before=before,
        groups=len(compared),
        pairs=len(pairs),
        rows=filter(None, (_row(pairs, key, text) for key, text in _MEASURES.items())),
        failed=[sum(one.rank(position) is None for one in compared) for position in (0, 1)],
        regressions=len(worse),
        smallest=smallest,
        measure=_MEASURES[smallest.record["optimum"]["measure"]] if smallest else None,
        commits={"kassay": commit(), "working directory": commit(Path.cwd())},
    )


def _render(template: str, command: Sequence[str], **values: object) -> str:
    # A command in a comment of Java must neither end the comment nor contain escapes.
    text = f"kassay {shlex.join(command)}".replace("*/", "* /").replace("\\u", "\\ u")
    jinja = environment(Path(__file__).with_name("templates"), autoescape=False)
    # A string literal of JSON is one of Java.
    jinja.filters["java"] = json.dumps
    return jinja.get_template(template).render(values, command=text, version=version("kassay"))


def _row(pairs: Sequence[ComparedGroup], measure: str, text: str) -> tuple[object, ...]:
    """Return the table row of a measure, with empty cells if no group has a value."""
    rows = [(one.value(1, measure), one.value(0, measure)) for one in pairs]
    known = np.array([row for row in rows if None not in row])
    if not len(known):
        return ()
    before, after = known.T
    differences = after - before
    low, high = mean_interval(*np.unique(differences, return_counts=True), seed=0)
    return (
        text if len(known) == len(pairs) else f"{text}, known for {len(known)} groups",
        f"{before.mean():.4g}",
        f"{after.mean():.4g}",
        f"{differences.mean():+.3g} ({low:+.3g} to {high:+.3g})",
        int((differences < 0).sum()),
        int((differences > 0).sum()),
    )


def junit_test(
    compared: Iterable[ComparedGroup],
    tested: JavaClass,
    *,
    after: str,
    before: str,
    command: Sequence[str],
) -> str:
    """Write the JUnit 5 test ``KassayRegressionTest`` for the assignor ``after``.

    A test method fails if ``after`` has a higher imbalance than ``before``, or more moves at equal
    imbalance. Groups with different weights or invalid claims are left out.
    """
    tests = []
    for one in sorted(compared, key=lambda one: one.size):
        new, best = one.rank(0), one.rank(1)
        claims = sum(len(member.owned) for member in one.group.members)
        if one.group.is_weighted or ownership(one.group).owned_count != claims:
            continue
        if best is not None and (new is None or new > best):
            name = re.sub(r"\W+", "_", one.group.id or "group", flags=re.ASCII).strip("_")
            tests.append({"name": name, "group": one.group, "squares": best[0], "moves": best[1]})
    if not tests:
        return f"// {after} is on no group worse than {before}, so there is no test.\n"
    return _render(
        f"{tested.library}_test.java.j2",
        command,
        tests=tests[:MAX_TESTS],
        reference=before,
        assignor=tested.name.replace("$", "."),
    )
