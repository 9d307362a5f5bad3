"""Import groups of captures and group documents from files, directories or standard input.

Group documents are yielded while they are read. Captures of one path are parsed, joined per group
and built. Options add subscriptions, hosts, speeds and weights from files, names or patterns.
"""

import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import TextIO

from kassay.experiments.sources.build_group import (
    HostRule,
    ImportOptions,
    MemberTopics,
    build_group,
    entry_of_member,
    with_hosts_and_speeds,
    with_subscriptions,
    with_weights,
)
from kassay.experiments.sources.describe_output import parse_text
from kassay.experiments.sources.kind_texts import is_kind_text, read_kind_text
from kassay.experiments.sources.merge_captures import Capture, ObservedGroup, merge_captures
from kassay.experiments.sources.table_rows import NO_ROWS, DocumentRows, merge_counts
from kassay.experiments.sources.tool_documents import UnknownFormatError, recognise_tool
from kassay.reference.documents.input_files import (
    SourceText,
    as_object,
    as_text,
    as_texts,
    format_value,
    read_json_object,
    read_text,
    source_texts,
)
from kassay.reference.documents.json_codec import read_groups
from kassay.reference.documents.kind_documents import KindDocument, OtherKindError
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import MAX_SPEED, Group, Member, WeightSource
from kassay.reference.model.group_remarks import AssumedSubscriptions
from kassay.reference.model.joined_groups import join_groups

_NO_WEIGHTS = "none"
WEIGHT_NAMES: Mapping[str, WeightSource | None] = {
    _NO_WEIGHTS: None,
    **{str(each): each for each in (WeightSource.LAG, WeightSource.RATE, WeightSource.SIZE)},
}
"""Weight source by name, without the weights that come from a file."""
CLIENT_ID, RATE = "client-id", "rate"
"""Names of sources: the client id as host, and the measured rate as speed."""
_RATE_UNITS = 100
"""Speed of the fastest member if speeds are rounded rates."""
_RECORDS = re.compile(r"^Dumping .*__consumer_offsets|^\| offset: \d+ ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ImportedGroup:
    """Result of importing one group: the group, an error, or the reason for skipping it."""

    id: str | None
    group: Group | None = None
    error: str | None = None
    skipped: str | None = None
    is_document: bool = False
    option_notes: tuple[str, ...] = ()  # notes that options add to a group document
    # Group of another kind; ``error`` is the error of readers of consumer groups.
    document: KindDocument | None = None

    @classmethod
    def of_document(cls, id: str | None, document: KindDocument | InputError) -> "ImportedGroup":
        """Return the result for a group of another kind than consumers, or for its error."""
        if isinstance(document, InputError):
            return cls(id, error=str(document))
        return cls(id, error=str(OtherKindError(document)), document=document)


class EmptyGroups(StrEnum):
    """Treatment of captured groups without members."""

    KEEP = "keep"
    SKIP = "skip"
    REJECT = "reject"  # skip them; a group whose members the source does not show is an error


def import_groups(
    paths: Sequence[Path],
    options: ImportOptions,
    *,
    stdin: TextIO | None = None,
    group: str | None = None,
    empty: EmptyGroups = EmptyGroups.KEEP,
) -> Iterator[ImportedGroup]:
    """Read captures and group documents and yield their groups.

    Captures in a directory and its subdirectories are from one moment and are merged per
    group; they come sorted by id. The path ``-`` is standard input. ``group`` is the id for
    tables without a group column; the default is the name of the file without its suffix,
    or of the directory. ``empty`` does not apply to group documents.
    """
    if options.measures_speeds:
        raise InputError(
            "speeds can be measured only in a running cluster: kassay import --bootstrap-server "
            "HOST:PORT --speeds rate"
        )
    for path in paths:
        try:
            texts = source_texts(path, stdin=stdin, group=group)
            yield from _import_texts(texts, options, empty=empty)
        except InputError as error:
            yield ImportedGroup(None, error=str(error))


def _import_texts(
    texts: Iterable[SourceText], options: ImportOptions, *, empty: EmptyGroups
) -> Iterator[ImportedGroup]:
    """Yield the consumer groups of all texts, then the groups of other kinds."""
    kind_texts: list[SourceText] = []
    options = yield from _consumer_groups(
        _without_kind_texts(texts, kind_texts), options, empty=empty
    )
    for text in kind_texts:
        yield from _kind_groups(text, options)


def _without_kind_texts(
    texts: Iterable[SourceText], kind_texts: list[SourceText]
) -> Iterator[SourceText]:
    """Yield the texts about consumer groups, and add the others to a list."""
    for text in texts:
        if text.error is None and text.documents is None and is_kind_text(text.text):
            kind_texts.append(text)
        else:
            yield text


def _consumer_groups(
    texts: Iterable[SourceText], options: ImportOptions, *, empty: EmptyGroups
) -> Generator[ImportedGroup, None, ImportOptions]:
    """Yield the groups of group documents while they are read, then those of all captures.

    Return the options with the partition counts and sizes of the captures.
    """
    captures: list[Capture] = []
    names: list[str] = []
    unreadable: list[Path] = []
    documents: dict[str | None, str] = {}  # last file of each id
    for text in texts:
        if text.documents is not None:
            for imported in _read_documents(text, options):
                if text.from_directory:
                    documents[imported.id] = text.name
                yield imported
            continue
        names.append(text.name)
        try:
            capture = _parse(text)
            options = _with_content(options, capture)
            captures.append(capture)
        except InputError as error:
            # Directories may hold unrelated JSON files.
            is_unrelated = isinstance(error, UnknownFormatError)
            if not is_unrelated:
                unreadable.append(Path(text.name))
            if not (is_unrelated and text.from_directory):
                yield ImportedGroup(text.group, error=str(error))
    if names:
        groups = merge_captures(captures, unreadable_files=unreadable)
        if not (groups or unreadable or documents) and (
            options.partition_counts or options.minimum_counts or options.sizes
        ):
            problem = "the files contain only partition counts or sizes, no group"
            yield ImportedGroup(None, error=f"{', '.join(names)}: {problem}")
        yield from (
            _import_group(groups[id], options, document=documents.get(id), empty=empty)
            for id in sorted(groups)
        )
    return options


def _kind_groups(text: SourceText, options: ImportOptions) -> Iterator[ImportedGroup]:
    try:
        for id, found in read_kind_text(
            text.text, name=text.name, group=text.group, options=options
        ):
            yield ImportedGroup.of_document(id, found)
    except InputError as error:
        yield ImportedGroup(text.group, error=str(error))


def load_metadata(path: Path | None) -> DocumentRows:
    """Read partition counts of topics from the output of a supported tool, if a file is given."""
    if path is None:
        return NO_ROWS
    text = read_text(path)
    parse = recognise_tool(text)
    content = NO_ROWS if parse is None else parse(text, name=str(path))
    if not (content.partition_counts or content.minimum_counts):
        raise InputError(f"{path}: the file contains no partition counts of topics")
    return content


def imported_group(
    name: str, build: Callable[[], Group], *, is_empty: bool, empty: EmptyGroups
) -> ImportedGroup:
    """Return the result of importing one group: the built group, an error or a skip reason."""
    if is_empty and empty is not EmptyGroups.KEEP:
        return ImportedGroup(name, skipped="the group has no active members")
    try:
        return ImportedGroup(name, group=build())
    except InputError as error:
        return ImportedGroup(name, error=str(error))


def join_imported(groups: Iterable[ImportedGroup]) -> Iterator[ImportedGroup]:
    """Join the imported groups to one group. Errors and skipped groups stay."""
    found = []
    is_document = True
    for imported in groups:
        if imported.group is None:
            yield imported
        else:
            found.append(imported.group)
            is_document = is_document and imported.is_document
    if not found:
        return
    try:
        joined = join_groups(found)
    except InputError as error:
        yield ImportedGroup(None, error=str(error))
    else:
        yield ImportedGroup(joined.id, joined, is_document=is_document)


def _parse(text: SourceText) -> Capture:
    if text.error is not None:
        raise text.error
    if _RECORDS.search(text.text):
        raise UnknownFormatError(
            f"{text.name}: the file contains records of kafka-dump-log.sh; read it with kassay "
            "history"
        )
    parse = recognise_tool(text.text)
    if parse is None:
        return Capture(text.name, text.group, parse_text(text.text, name=text.name))
    content = parse(text.text, name=text.name)
    return Capture(text.name, text.group, content.parsed(), content)


def _with_content(known: ImportOptions, capture: Capture) -> ImportOptions:
    """Add the partition counts, sizes and topic ids of a capture to a copy of import options."""
    content = capture.content
    if content is NO_ROWS:
        return known
    minimum, sizes = dict(known.minimum_counts or {}), dict(known.sizes or {})
    minimum |= {t: max(n, minimum.get(t, 0)) for t, n in content.minimum_counts.items()}
    sizes |= {tp: max(n, sizes.get(tp, 0)) for tp, n in content.sizes.items()}
    counts = merge_counts(
        known.partition_counts or {}, content.partition_counts, where=capture.name
    )
    return replace(
        known,
        partition_counts=counts,
        minimum_counts=minimum,
        sizes=sizes,
        topic_ids={**(known.topic_ids or {}), **content.topic_ids},
    )


def _read_documents(text: SourceText, options: ImportOptions) -> Iterator[ImportedGroup]:
    for id, group in read_groups(text.documents or (), name=text.name):
        try:
            if isinstance(group, InputError):
                raise group
            changed = _with_options(group, options)
            added = tuple(note for note in changed.notes if note not in group.notes)
            yield ImportedGroup(id, changed, is_document=True, option_notes=added)
        except InputError as error:
            yield ImportedGroup(id, error=str(error), is_document=True)


def _with_options(group: Group, options: ImportOptions) -> Group:
    """Set subscriptions, hosts, speeds and weights of a group document that the options give."""
    try:
        if options.subscriptions is not None or options.assumed_subscriptions is not None:
            group = with_subscriptions(group, options)
        if options.hosts is not None or options.speeds is not None:
            group = with_hosts_and_speeds(group, options)
        if options.without_weights:
            topics = tuple(replace(topic, weights=None) for topic in group.topics)
            return replace(group, topics=topics, weight_source=None, weight_unit=None)
        if options.weights is None and options.weight_table is None:
            return group
        return with_weights(group, options)
    except InputError as error:
        raise InputError(f"group {group.id!r}: {error}") from None


def _import_group(
    observed: ObservedGroup, options: ImportOptions, *, document: str | None, empty: EmptyGroups
) -> ImportedGroup:
    """Build a group from its captures, unless the file ``document`` also contains the group."""
    if document is not None:
        return ImportedGroup(
            observed.id,
            error=f"group {observed.id!r} is in captures and in the group document "
            f"{document}; move one of them to another directory",
        )
    if observed.error is not None:
        return ImportedGroup(observed.id, error=observed.error)
    if not observed.members and "missing" in observed.notices:
        return ImportedGroup(observed.id, skipped="the cluster has no such group")
    if empty is EmptyGroups.REJECT and observed.hides_members:
        number = observed.stated_members
        return ImportedGroup(
            observed.id,
            error=f"group {observed.id!r}: the source shows "
            + ("no members" if number is None else f"{number} members")
            + " and no owners of partitions; add the output of kafka-consumer-groups.sh "
            "--describe, or read the cluster with kassay import --bootstrap-server",
        )
    return imported_group(
        observed.id, lambda: build_group(observed, options), is_empty=observed.is_empty, empty=empty
    )


def with_named_data(
    options: ImportOptions, *, subscriptions: Path | str | None, weights: str | None
) -> ImportOptions:
    """Return a copy with subscriptions (an assumption by its name, or a file) and named weights.

    The weights ``none`` remove the weights of documents, and None keeps them. Raise InputError for
    weights that are not in `WEIGHT_NAMES`.
    """
    if subscriptions in list(AssumedSubscriptions):
        options = replace(options, assumed_subscriptions=AssumedSubscriptions(str(subscriptions)))
    elif subscriptions is not None:
        options = replace(options, subscriptions=load_subscriptions(Path(subscriptions)))
    if weights is None:
        return options
    if weights not in WEIGHT_NAMES:
        raise InputError(f"weights must be one of {', '.join(WEIGHT_NAMES)}, got {weights!r}")
    return replace(options, weights=WEIGHT_NAMES[weights], without_weights=weights == _NO_WEIGHTS)


def load_subscriptions(path: Path) -> dict[str, MemberTopics]:
    """Read a JSON file with the subscriptions of members, by group.

    The form is ``{"group": {"member, client or instance id": ["topic", ...]}}``.
    """
    return {
        group: {
            member: as_texts(topics, f"{path}: {group}[{member!r}]")
            for member, topics in as_object(members, f"{path}: {group}").items()
        }
        for group, members in read_json_object(path).items()
    }


def parse_hosts(text: str) -> HostRule:
    """Convert ``client-id``, a pattern with a part in parentheses or a file name to a rule.

    The rule returns the host of a member, and raises InputError for a member without host.
    """
    if text == CLIENT_ID:
        return _host_of_client_id
    if "(" not in text:
        table = read_json_object(Path(text))
        hosts = {name: as_text(host, f"{text}: {name}") for name, host in table.items()}
        return lambda member: entry_of_member(hosts, member, text)
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise InputError(f"hosts: {text!r} is not a regular expression: {error}") from None
    if pattern.groups != 1:
        raise InputError(
            f"hosts: the pattern {text!r} must have one part in parentheses, got {pattern.groups}"
        )
    return lambda member: _matched_host(pattern, member)


def load_speeds(path: Path) -> dict[str, int]:
    """Read a JSON file of speeds or measured rates: ``{"member, client id or host": 1.5}``."""
    rates = {}
    for name, rate in read_json_object(path).items():
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 < rate < 1e18:
            raise InputError(
                f"{path}: {name}: speed must be a number above 0, got {format_value(rate)}"
            )
        rates[name] = Fraction(str(rate))
    return integer_speeds(rates)


def integer_speeds(rates: Mapping[str, Fraction]) -> dict[str, int]:
    """Convert rates to integer speeds: unchanged if valid, else in per cent of the fastest.

    Examples
    --------
    >>> integer_speeds({"a": Fraction(2), "b": Fraction(3)})
    {'a': 2, 'b': 3}
    >>> integer_speeds({"a": Fraction(1873, 2), "b": Fraction(1250)})
    {'a': 75, 'b': 100}
    """
    if all(rate.denominator == 1 and 1 <= rate <= MAX_SPEED for rate in rates.values()):
        return {name: int(rate) for name, rate in rates.items()}
    fastest = max(rates.values())
    return {name: max(1, round(rate * _RATE_UNITS / fastest)) for name, rate in rates.items()}


def measured_speeds(group: Group, consumed: Mapping[tuple[str, int], int]) -> dict[str, int]:
    """Return the speed per member id, from the messages consumed per partition in a sample.

    A member without partitions gets the mean rate of the other members.
    """
    rates = {
        member.id: Fraction(sum(max(0, consumed.get((topic, n), 0)) for topic, n in member.owned))
        for member in group.members
    }
    busy = [rates[member.id] for member in group.members if member.owned]
    if not any(busy):
        raise InputError(
            f"group {group.id!r}: no member consumed messages in the sample; measure the speeds "
            "while the group has lag, or give --speeds FILE"
        )
    mean = sum(busy, Fraction(0)) / len(busy)
    fastest = max(busy)
    return {
        member.id: max(
            1, round((rates[member.id] if member.owned else mean) * _RATE_UNITS / fastest)
        )
        for member in group.members
    }


def _host_of_client_id(member: Member) -> str:
    if member.client.id is None:
        raise InputError(
            f"member {member.id!r} has no client id; give --hosts a pattern or a file instead of "
            f"{CLIENT_ID}"
        )
    return member.client.id


def _matched_host(pattern: re.Pattern[str], member: Member) -> str:
    name = member.client.id or member.id
    found = pattern.search(name)
    if found is None or not found[1]:
        raise InputError(
            f"member {member.id!r}: the pattern {pattern.pattern!r} of --hosts matches no host in "
            f"{name!r}"
        )
    return found[1]
