"""Read descriptions of groups and topics that many tools write as text or JSON.

A reader gets the lines of a capture and a position, and returns the description at this position,
or None. There are readers for texts of rpk, kaf, kafkactl, kcat and Java programs.

JSON is read by the names of its keys. It comes from rpk, Confluent CLI, kafbat and kafka-ui, AKHQ,
Redpanda Console, kafkactl and kcl, and the dumps of ``describe`` calls of confluent-kafka,
kafka-python and kafkajs. Their keys differ only in spelling. The data file lists the spellings in
lower case without ``_`` and ``-``. An unknown key with a number or text is ignored. An unknown key
with a list or object is an error, because it may contain members.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any

import yaml

from kassay.experiments.sources import table_rows
from kassay.experiments.sources.capture_contents import DocumentRows, FoundText, require_last_page
from kassay.experiments.sources.clean_lines import FORMS, Line
from kassay.experiments.sources.table_rows import Assignment, OffsetRow, StateRow
from kassay.reference.documents.files import (
    as_integer,
    as_text,
    error_at,
    format_value,
    read_data_file,
)
from kassay.reference.model.display import count_of
from kassay.reference.model.errors import InputError
from kassay.reference.protocol import message_decoder

_SUMMARY = FORMS["line of rpk"]
_PLAIN = re.compile(r"\S+(?<!\.\.\.)")
"""Valid id of a group on its own line. A text with blanks could be two texts."""


def read_rpk_summary(lines: Sequence[Line], at: int, name: str) -> FoundText | None:
    """Read the summary above the table of ``rpk group describe``, or return None."""
    found: dict[str, str] = {}
    for line in lines[at:]:
        match = _SUMMARY.fullmatch(line.text.strip())
        if match is None or match[1] in found:
            break
        found[match[1]] = (match[4] or "").strip()
        if len(found) == 2 and not (match[1].startswith("COORDINATOR") and "GROUP" in found):
            return None
    if len(found) < 2:
        return None
    group, number = found["GROUP"], lines[at].number
    is_complete = {"STATE", "MEMBERS", "BALANCER"} <= found.keys() and found["STATE"].isalpha()
    if not (is_complete and _PLAIN.fullmatch(group)) or not any(
        key.startswith("COORDINATOR") for key in found
    ):
        message = "the summary of rpk group describe is not complete"
        return FoundText("rpk", error=error_at(name, number, message), count=len(found))
    return _described(found, "rpk", lines[at], name, count=len(found), is_entered=True)


def _described(
    value: Mapping[str, object],
    rule: str,
    line: Line,
    name: str,
    *,
    count: int = 1,
    is_entered: bool = False,
) -> FoundText:
    """Convert the keys and values of a description to rows, or return the error in them.

    With ``is_entered``, the tables below the description are about its group.
    """
    try:
        contents = read_group_json(value, f"{name}:{line.number}", line=line.number)
    except InputError as error:
        return FoundText(rule, error=error, count=count)
    group = contents[0].states[0].group if is_entered else None
    return FoundText(rule, contents, count=count, group=group)


_PARTITIONS = re.compile(r"(?P<topic>[\w.-]+)\s+(=> )?\[(?P<numbers>[\d ]*)\]")
_KAF_OFFSET = re.compile(r"(\d+)\s+(-?\d+)\s+(-?\d+)\s+(-?\d+)(\s+\S.*)?")
_KAF_NOISE = FORMS["other line of kaf"]
_KAF_KEY = re.compile(r"(Group ID|State|Protocol|Host):\s*(\S+)?")
_BLOCK = re.compile(r"(\S+):")


def read_kaf(  # noqa: C901, PLR0912 - one branch per kind of line
    lines: Sequence[Line], at: int, name: str
) -> FoundText | None:
    """Read the output of ``kaf group describe``, or return None for other lines."""
    if not lines[at].text.lstrip().startswith("Group ID:"):
        return None
    values: dict[str, str] = {}
    offsets: dict[tuple[str, int], tuple[int, int, int]] = {}
    owned: list[tuple[str, Assignment]] = []  # by client and host
    block, has_members, count = "", False, 0
    for line in lines[at:]:
        text = line.text.strip()
        if text.endswith("..."):
            break
        if match := _KAF_KEY.fullmatch(text):
            if match[1] == "Group ID" and count:
                break
            values[match[1]] = match[2] or ""
            if match[1] == "Host":
                owned.append((f"{block}_{match[2] or ''}", ()))
        elif text == "Members:":
            has_members = True
        elif match := _KAF_OFFSET.fullmatch(text):
            at_offset, at_end, behind = (int(match[index]) for index in (2, 3, 4))
            if has_members or (at_offset >= 0 and behind != at_end - at_offset):
                break
            offsets[block, int(match[1])] = (at_offset, at_end, behind)
        elif (match := _PARTITIONS.fullmatch(text)) and owned:
            client, before = owned[-1]
            numbers = tuple(map(int, match["numbers"].split()))
            owned[-1] = (client, (*before, (match["topic"], numbers)))
        elif "Not available" in text:
            message = "this release of kaf does not show assignments; add the output of rpk or kcl"
            return FoundText("kaf", error=error_at(name, line.number, message), count=count + 1)
        elif match := _BLOCK.fullmatch(text) if text not in ("Offsets:", "Assignments:") else None:
            block = match[1]
        elif not _KAF_NOISE.fullmatch(text):
            has_members = has_members and not line.text[:1].isspace()
            break
        count += 1
    group, number = values.get("Group ID", ""), lines[at].number
    if not (has_members and _PLAIN.fullmatch(group) and values.get("State", "").isalpha()):
        message = "the output of kaf group describe is not complete"
        return FoundText("kaf", error=error_at(name, number, message), count=count)
    owners = {
        (topic, n): client for client, topics in owned for topic, numbers in topics for n in numbers
    }
    rows = []
    for topic, n in sorted({*owners, *offsets}):
        current, end, lag = offsets.get((topic, n), (None, None, None))
        owner = owners.get((topic, n))
        rows.append(OffsetRow(number, group, topic, n, current, end, lag, owner=owner))
    protocol = values.get("Protocol") or None
    state = StateRow(number, group, values["State"], strategy=protocol, members=len(owned))
    return FoundText("kaf", [DocumentRows(offsets=rows, states=[state])], count=count, group=group)


_DESCRIPTION = FORMS["group of the AdminClient"]
_MEMBER = FORMS["member of the AdminClient"]


def read_admin_client(lines: Sequence[Line], at: int, name: str) -> FoundText | None:
    """Read groups that a Java program prints as ``(groupId=orders, ...``, or return None."""
    line = lines[at]
    if "groupId=" not in line.text or "isSimpleConsumerGroup=" not in line.text:
        return None
    groups = []
    for match in _DESCRIPTION.finditer(line.text):
        members = [
            {
                key: re.findall(r"[^,\s]+", value) if key.endswith("assignment") else value
                for key, value in one.groupdict().items()
                if value not in _NULL
            }
            for one in _MEMBER.finditer(match[0])
        ]
        if len(members) != match["members"].count("memberId="):
            break
        epoch = re.search(r"groupEpoch=(\d+)", line.text) if match["type"] == "Consumer" else None
        assignor = match["assignor"].strip("'\"")
        described = {"group": match["group"], "state": match["state"], "assignor": assignor}
        if epoch is not None:
            described["groupepoch"] = epoch[1]
        groups.append({**described, "members": members})
    if len(groups) < line.text.count("isSimpleConsumerGroup="):
        error = error_at(name, line.number, "the description of a group is not complete", line.text)
        return FoundText("AdminClient", error=error)
    return _described({"groups": groups}, "AdminClient", line, name)


_NULL = (None, "null", "Optional.empty")


def read_yaml(lines: Sequence[Line], at: int, name: str) -> FoundText | None:
    """Read the output of ``kafkactl describe consumer-group -o yaml``, or return None."""
    start = re.fullmatch(r"(\s*)[Gg]roup:\s*", lines[at].text)
    if start is None:
        return None
    texts = [lines[at].text.strip()]
    for line in lines[at + 1 :]:
        text = line.text.removeprefix(start[1])
        if not re.match(r" +\S|- |[A-Za-z]\w*:(\s|$)", text) or text.startswith("group:"):
            break
        texts.append(text)
    where, number, count = f"{name}:{lines[at].number}", lines[at].number, len(texts)
    try:
        value = yaml.safe_load("\n".join(texts))
        if not is_group_json(value):
            return None
        contents = read_group_json(value, where, line=number)
    except (yaml.YAMLError, InputError) as error:
        message = str(error).partition("\n")[0]
        problem = error if isinstance(error, InputError) else error_at(name, number, message)
        return FoundText("kafkactl", error=InputError(str(problem)), count=count)
    if "members" in value:
        return FoundText("kafkactl", contents, count=count)
    # The text is cut, or an option has hidden them.
    missing = error_at(name, number, "the description of the group has no members")
    return FoundText("kafkactl", error=missing, count=count)


_KCAT_TOPIC = re.compile(r'topic "(?P<topic>[^"]+)" with (?P<count>\d+) partitions:(?P<error>.*)')
_KCAT_PARTITION = re.compile(r"partition \d+, leader -?\d+, replicas: .*")
_KCAT_OTHER = FORMS["other line of kcat -L"]


def read_kcat(lines: Sequence[Line], at: int, name: str) -> FoundText | None:
    """Read a topic or another line in the output of ``kcat -L``, or return None."""
    text = lines[at].text.strip()
    match = _KCAT_TOPIC.fullmatch(text)
    if match is None:
        return FoundText("kcat -L") if _KCAT_OTHER.fullmatch(text) else None
    rest = takewhile(lambda one: _KCAT_PARTITION.fullmatch(one.text.strip()), lines[at + 1 :])
    shown, stated = sum(1 for _ in rest), int(match["count"])
    if shown != stated:
        message = f"topic {match['topic']!r} has {count_of(stated, 'partition')}, {shown} are shown"
        error = error_at(name, lines[at].number, message)
        return FoundText("kcat -L", error=error, count=shown + 1)
    counts = {} if match["error"].strip() else {match["topic"]: stated}
    return FoundText("kcat -L", [DocumentRows(partition_counts=counts)], count=shown + 1)


Reader = Callable[[Sequence[Line], int, str], FoundText | None]
READERS: tuple[Reader, ...] = (
    *(read_rpk_summary, read_kaf, read_admin_client, read_yaml, read_kcat),
)
"""Readers of texts, in the order in which kassay tries them."""


_NAMES = {key: tuple(names.split()) for key, names in read_data_file(__package__, "group_json.txt")}
_TOPIC_PARTITION = re.compile(r"([a-zA-Z0-9._-]+)-(\d+)")
_FOREIGN = frozenset({"kind", "kafka"})
"""Keys of REST Proxy and Metricbeat, which other functions read."""
_UNASSIGNED = ("", "-")
_PATH = re.compile(r"\.\d+(\.|$)|\[\d+\]")


class _Node:
    """JSON object with access by key, in all spellings of the key that tools use."""

    def __init__(self, table: Mapping[str, Any], where: str) -> None:
        self.where = where
        # An object with a link is the address of data that another answer shows.
        self.table = {
            _normal(key): value
            for key, value in table.items()
            if not (isinstance(value, Mapping) and value.keys() == {"related"})
        }
        self.used: set[str] = set()

    def has(self, *keys: str) -> bool:
        return all(any(name in self.table for name in _NAMES[key]) for key in keys)

    def get(self, key: str, kind: type | tuple[type, ...] = object) -> Any:
        """Return the first unused value of a key that has a given type, or None."""
        for name in _NAMES[key]:
            value = self.table.get(name)
            if value is not None and isinstance(value, kind) and name not in self.used:
                self.used.add(name)
                return value
        return None

    def text(self, key: str) -> str | None:
        value = self.get(key)
        if isinstance(value, Mapping):  # such as {"id": "c-1"}
            value = next((one for one in value.values() if isinstance(one, str)), None)
        return None if value in (None, *_UNASSIGNED) else as_text(value, f"{self.where}: {key}")

    def number(self, key: str) -> int | None:
        value = self.get(key, (int, str, float))
        if isinstance(value, str) and re.fullmatch(r"-?\d{1,19}", value):
            value = int(value)
        if value in (None, *_UNASSIGNED):
            return None
        return as_integer(value, f"{self.where}: {key}")

    def each(self, key: str) -> Iterator["_Node"]:
        values = self.get(key, list)
        for index, value in enumerate(values or ()):
            where = f"{self.where}: {key}[{index}]"
            if not isinstance(value, Mapping):
                raise InputError(f"{where}: expected an object, got {format_value(value)}")
            yield _Node(value, where)

    def check(self) -> None:
        """Raise InputError if the object has an error, an unknown list or an unknown object."""
        error = self.get("error")
        if error not in (None, 0, "", "none", "null"):
            raise InputError(f"{self.where}: the tool reports error {format_value(error)}")
        require_last_page(self.table, self.where)
        for name, value in self.table.items():
            is_list = name in (*_NAMES["rows"], *_NAMES["members"], *_NAMES["assignment"])
            if is_list and isinstance(value, str) and value[:1] in ("[", "{"):
                raise InputError(f"{self.where}: {name} must be a list, got text")
            if _PATH.search(name):
                raise InputError(f"{self.where}: the key {name!r} is a path; give nested JSON")
            is_text_list = isinstance(value, list) and not any(
                isinstance(one, Mapping | list) for one in value
            )
            known = self.used.union(_NAMES["ignored"])
            if isinstance(value, Mapping | list) and value and name not in known:
                if is_text_list and name == "topics":
                    continue
                raise InputError(f"{self.where}: unknown key {name!r} with {format_value(value)}")


def _normal(key: str) -> str:
    return re.sub(r"[_\- ]", "", key).lower()


def is_group_json(value: object) -> bool:
    """Return whether a JSON value describes groups, members, states of groups or lags."""
    if isinstance(value, list):
        return bool(value) and all(map(is_group_json, value))
    if not isinstance(value, Mapping) or not value or _FOREIGN & value.keys():
        return False
    node = _Node(value, "")
    if node.has("groups"):
        return any(isinstance(node.table.get(name), list) for name in _NAMES["groups"])
    if len(node.table) > 1 and (node.has("group") or "id" in node.table):
        return _describes_group(node)
    return all(isinstance(one, Mapping) and is_group_json(one) for one in value.values())


def _describes_group(node: _Node) -> bool:
    if node.has("group"):
        keys = ("members", "consumer", "state", "assignment")
        return any(map(node.has, keys)) or node.has("topic", "partition")
    is_kassay = isinstance(node.table.get("topics"), Mapping)
    is_other = node.has("state") or not {"coordinator", "offsets"}.isdisjoint(node.table)
    return node.has("members") and is_other and not is_kassay


def read_group_json(value: object, where: str, *, line: int) -> list[DocumentRows]:
    """Read a JSON value that describes groups, or raise InputError for unknown parts."""
    if isinstance(value, list):
        return [
            one
            for index, each in enumerate(value)
            for one in read_group_json(each, f"{where}[{index}]", line=line)
        ]
    if not isinstance(value, Mapping):
        raise InputError(f"{where}: expected an object, got {format_value(value)}")
    node = _Node(value, where)
    if node.has("groups"):
        groups = [_group(each, line) for each in node.each("groups")]
        node.check()
        return groups
    if node.has("group") or "id" in node.table:
        return [_group(node, line)]
    return [
        one
        for key, each in value.items()
        for one in read_group_json(each, f"{where}: {key}", line=line)
    ]


def _group(node: _Node, line: int) -> DocumentRows:
    """Convert an object about a group, a member or a partition to rows."""
    inner = node.get("group", Mapping)
    if inner is not None:  # {"Group": {"Name": "orders", "ProtocolType": "consumer"}}
        inside = _Node(inner, f"{node.where}: group")
        if inside.has("members"):
            return _group(inside, line)
        group, kind = inside.text("topic"), inside.text("type")
    else:
        group, kind = node.text("group") or node.table.get("id"), node.text("type")
    group = as_text(group, f"{node.where}: id of the group")
    if kind not in (None, "consumer"):
        raise InputError(f"{node.where}: group {group!r} must have type consumer, got {kind!r}")
    cluster = node.text("cluster")
    if node.has("topic", "partition"):
        offset = _offset(node, group, None, line)
        node.check()
        return DocumentRows(offsets=[offset], cluster=cluster)
    if node.has("consumer") and not node.has("members"):
        return DocumentRows(members=[_member(node, group, line)], cluster=cluster)
    members = [_member(one, group, line) for one in node.each("members")]
    stated = node.number("members") if not members else None
    offsets = [row for one in _topics(node) for row in _offsets(one, group, line)]
    shown = len(members) if node.has("members") and stated is None else stated
    state = table_rows.StateRow(
        line,
        group,
        _state(node.text("state")),
        strategy=node.text("assignor"),
        members=shown,
        epoch=node.number("group_epoch"),
    )
    names = [name for name in _NAMES["members"] if name in node.table]
    if any(node.table[name] is None for name in names) and state.state not in ("Empty", "Dead"):
        raise InputError(f"{node.where}: group {group!r} must have a list of members, got null")
    node.check()
    by_client = [
        table_rows.OffsetRow(line, group, topic, number, owner=f"{one.client_id}_{one.host or ''}")
        for one in members
        if not one.consumer_id
        for topic, numbers in one.assignment or ()
        for number in numbers
    ]
    unknown = {row.topic for row in by_client} - {row.topic for row in offsets}
    if offsets and unknown:
        name = min(map(str, unknown))
        raise InputError(
            f"{node.where}: a member has {name!r}, but its partitions are missing; add them"
        )
    if by_client:  # without member ids, and therefore without a count of them
        state = table_rows.StateRow(line, group, state.state, strategy=state.strategy)
    shows = bool(by_client) or any(row.consumer_id or row.host for row in offsets)
    return DocumentRows(
        offsets=[*by_client, *offsets],
        members=[one for one in members if one.consumer_id],
        states=[state],
        shows_owners=shows,
        cluster=cluster,
    )


def _topics(node: _Node) -> Iterator[_Node]:
    """Yield the objects in the lists of topics or partitions. Lists of names are skipped."""
    for name in _NAMES["rows"]:
        values = node.table.get(name)
        if isinstance(values, list) and name not in node.used:
            node.used.add(name)
            for index, value in enumerate(values):
                where = f"{node.where}: {name}[{index}]"
                if isinstance(value, Mapping):
                    yield _Node(value, where)
                elif any(isinstance(one, Mapping) for one in values):
                    raise InputError(f"{where}: expected an object, got {format_value(value)}")


def _offsets(
    node: _Node, group: str, line: int, topic: str | None = None
) -> Iterator[table_rows.OffsetRow]:
    """Yield one row per partition from an object about a partition or a topic."""
    lists = [value for name, value in node.table.items() if name in _NAMES["rows"]]
    if node.has("partition") or all(isinstance(one, int | str) for one in lists):
        yield _offset(node, group, topic, line)
    else:
        topic = node.text("topic")
        for inner in _topics(node):
            yield from _offsets(inner, group, line, topic)
    node.check()


def _offset(node: _Node, group: str, topic: str | None, line: int) -> table_rows.OffsetRow:
    number = node.number("partition")
    name = node.text("topic") or topic
    if number is None or number < 0 or name is None:
        raise InputError(
            f"{node.where}: a partition must have a topic and a number of at least 0, "
            f"got {name!r} and {number!r}"
        )
    consumer, client, host = node.text("consumer"), node.text("client"), node.text("host")
    node.get("instance")
    if consumer is None and (client or host):
        raise InputError(f"{node.where}: the id of member {client or host!r} is missing")
    return table_rows.OffsetRow(
        line,
        group,
        name,
        number,
        current=node.number("current"),
        end=node.number("end"),
        lag=node.number("lag"),
        consumer_id=consumer,
        host=host,
        client_id=client,
    )


def _member(node: _Node, group: str, line: int) -> table_rows.MemberRow:
    id = node.text("consumer") or node.table.get("id") or ""
    assigned, metadata = node.get("assignment"), node.get("metadata")
    assignment = _assignment(assigned, f"{node.where}: assignment")
    target = node.get("target")
    row = table_rows.MemberRow(
        line,
        group,
        as_text(id, f"{node.where}: id"),
        instance_id=node.text("instance"),
        client_id=node.text("client"),
        host=node.text("host"),
        partitions=None if assigned is None else sum(len(one) for _, one in assignment),
        assignment=None if assigned is None else assignment,
        epoch=node.number("epoch"),
        target=None if target is None else _assignment(target, f"{node.where}: target"),
        subscription=_subscription(metadata, f"{node.where}: subscription"),
    )
    node.check()
    return row


def _subscription(value: object, where: str) -> tuple[str, ...] | None:
    value = _decoded(value, message_decoder.SUBSCRIPTION, where)
    if isinstance(value, Mapping):
        names = ("topics", "subscription")
        value = next((value[key] for key in value if _normal(key) in names), None)
    if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value):
        return None
    return tuple(value)


def _assignment(value: object, where: str) -> table_rows.Assignment:
    """Convert an assignment in JSON to partition numbers by topic."""
    found: dict[str, list[int]] = {}
    for topic, number in _pairs(_decoded(value, message_decoder.ASSIGNMENT, where), where):
        found.setdefault(topic, []).append(number)
    return tuple((topic, tuple(numbers)) for topic, numbers in found.items())


def _pairs(value: object, where: str) -> Iterator[tuple[str, int]]:
    match value:
        case None:
            return
        case str() if found := _TOPIC_PARTITION.fullmatch(value):
            yield found[1], int(found[2])
        case str() if (read := table_rows.read_assignment(value)) is not None:
            yield from ((topic, number) for topic, numbers in read for number in numbers)
        case [str() as topic, int() as number]:
            yield topic, number
        case [str() as topic, [*numbers]]:
            yield from ((topic, as_integer(number, where)) for number in numbers)
        case [*entries]:
            for index, entry in enumerate(entries):
                yield from _pairs(entry, f"{where}[{index}]")
        case Mapping():
            yield from _pairs_of_object(_Node(value, where), value)
        case _:
            raise InputError(f"{where}: expected an assignment, got {format_value(value)}")


def _pairs_of_object(node: _Node, value: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    topic = node.text("topic") or ("" if node.has("topic") else None)
    if topic is not None:
        number = node.number("partition")
        numbers = [number] if number is not None else node.get("numbers", list)
        if numbers is None:
            raise InputError(f"{node.where}: the partitions of topic {topic!r} are missing")
        yield from ((topic, as_integer(one, node.where)) for one in numbers)
        return
    inner = next((value[key] for key in value if _normal(key) in _LISTS), None)
    if inner is not None:
        yield from _pairs(_decoded(inner, message_decoder.ASSIGNMENT, node.where), node.where)
        return
    for name, numbers in value.items():
        if _normal(name) in _NAMES["numbers"]:
            raise InputError(f"{node.where}: the topic of {name!r} is missing")
        if isinstance(numbers, list):
            yield from ((name, as_integer(one, node.where)) for one in numbers)
        elif numbers not in (None, ""):
            problem = f"unknown key {name!r} with the value {format_value(numbers)}"
            action = "remove it or give a list of partition numbers"
            raise InputError(f"{node.where}: {problem}; {action}")


_LISTS = ("assignedpartitions", "topicpartitions", "assignment", "partitions", "topics")


def _decoded(value: Any, schema: message_decoder.Schema, where: str) -> Any:
    """Decode a message in a Node.js Buffer. Return other values unchanged."""
    if not isinstance(value, Mapping) or value.get("type") != "Buffer":
        return value
    try:
        data = bytes(value.get("data") or ())
        fields = message_decoder.decode_message(schema, data) if data else {}
    except (ValueError, TypeError, message_decoder.CorruptRecordError) as error:
        raise InputError(f"{where}: the Buffer is not a valid message: {error}") from None
    if schema is message_decoder.SUBSCRIPTION:
        return fields
    return [[one["topic"], list(one["partitions"])] for one in fields.get("assigned", ())]


def _state(text: str | None) -> str:
    if text is None:
        return "-"
    word = text.rpartition(".")[2]
    words: Sequence[str] = word.split("_")
    state = "".join(map(str.capitalize, words)) if word.isupper() or word.islower() else word
    return state.replace("Rebalancing", "Rebalance")  # as confluent-kafka spells it
