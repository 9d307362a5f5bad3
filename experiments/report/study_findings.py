"""Findings of a study as sentences with a number and a scope, for the start of a report."""

from collections.abc import Iterator, Mapping, Sequence

from kassay.experiments.plotting.page_templates import digits_in_groups
from kassay.experiments.report.assignor_summary import AssignorSummary, Proportion
from kassay.experiments.report.report_table import short_number

Halves = Mapping[str, tuple[AssignorSummary, AssignorSummary]]
"""Results on the groups with equal and with mixed subscriptions, by assignor."""


def study_findings(
    summaries: Mapping[str, AssignorSummary], halves: Halves, compared: Sequence[str]
) -> tuple[str, ...]:
    """Describe the results of the compared assignors, one sentence per assignor and measure."""
    found = [(name, summaries[name]) for name in compared if name in summaries]
    sentences = [sentence for name, one in found for sentence in _sentences(name, one, halves)]
    return (*sentences, *_limits(found))


def _sentences(name: str, found: AssignorSummary, halves: Halves) -> Iterator[str]:
    above = found.missed_maximum
    parts = " ".join(
        f"{kind} subscriptions: {half.missed_maximum.percent_with_interval}."
        for kind, half in zip(("Equal", "Mixed"), halves[name], strict=True)
        if half.answered
    )
    yield (
        f"{name}: the maximum load is above its minimum in {digits_in_groups(above.count)} of "
        f"{digits_in_groups(above.total)} groups, {above.percent_with_interval}. {parts} "
        f"The mean excess is {short_number(found.mean_excess)}\u00a0% of the minimum."
    )
    if found.unnecessary_moves_per_rebalance is not None:
        moves = found.with_unnecessary_moves
        yield (
            f"{name} makes {short_number(found.unnecessary_moves_per_rebalance)} unnecessary moves "
            f"per rebalance, in {moves.percent_with_interval} of {digits_in_groups(moves.total)} "
            "groups with owned partitions."
        )
    if found.nonterminating:
        yield f"{name} does not terminate on {digits_in_groups(found.nonterminating)} groups."
    if found.failed:
        yield f"{name} fails on {digits_in_groups(found.failed)} groups."


def _limits(found: Sequence[tuple[str, AssignorSummary]]) -> Iterator[str]:
    """Explain a share of 0 % in a sample."""
    shares = [share for _, one in found for share in (one.missed_maximum, one.missed)]
    zeros = [share for share in shares if share.interval is not None and not share.count]
    if zeros:
        yield _zero_share_sentence(min(zeros, key=lambda share: share.total))


def _zero_share_sentence(share: Proportion) -> str:
    return (
        f"0\u00a0% of {digits_in_groups(share.total)} groups does not prove that no such group "
        f"exists: the 95\u00a0% interval is {share.interval_text}\u00a0% of the groups of these "
        "families."
    )
