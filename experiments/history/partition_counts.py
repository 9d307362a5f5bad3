"""Determine the partition count of each topic at each generation of a group."""

from collections.abc import Iterator, Mapping, Sequence

from kassay.experiments.history.generations import Generation
from kassay.experiments.sources.tool_documents.document_rows import Counts


def counts_by_generation(
    generations: Sequence[Generation], given: Mapping[str, int]
) -> Iterator[Counts]:
    """Yield the partition counts of topics at each generation of a group.

    The generations are from one incarnation of the group: it is not deleted between them.
    ``given`` are the counts at the end. They apply to assigned and to subscribed topics. A topic
    has fewer partitions before a generation in which new ones are assigned: then the count is that
    of the assignments so far. Partitions that are never assigned exist from the start.
    """
    final: Counts = {}
    for generation in generations:
        _observe(final, generation)
    observed: Counts = {}
    for generation in generations:
        _observe(observed, generation)
        counts = dict(observed)
        subscribed = {t for member in generation.members for t in member.subscription or ()}
        for topic in sorted((subscribed | observed.keys()) & given.keys()):
            if observed.get(topic, 0) == final.get(topic, 0):
                counts[topic] = max(given[topic], observed.get(topic, 0))
        yield counts


def _observe(counts: Counts, generation: Generation) -> None:
    """Update partition counts from the assignments and recorded counts of a generation."""
    for member in generation.members:
        for topic, numbers in member.assigned or ():
            counts[topic] = max([counts.get(topic, 0), *(number + 1 for number in numbers)])
    counts.update(generation.partition_counts)
