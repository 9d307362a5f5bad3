"""Read the texts about groups and topics of rpk, kaf, kafkactl, kcat and Java programs.

Each reader gets the lines of a capture and a position, and returns what stands there, or None.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile

import yaml

from kassay.experiments.sources.document_rows import DocumentRows, FoundText
from kassay.experiments.sources.group_json import is_group_json, read_group_json
from kassay.experiments.sources.table_rows import Assignment, OffsetRow, StateRow
from kassay.experiments.sources.text_lines import FORMS, Line
from kassay.reference.documents.input_files import error_at
from kassay.reference.model.errors import InputError

_SUMMARY = FORMS["line of rpk"]


_PLAIN = re.compile(r"\S+(?<!\.\.\.)")
"""Valid id of a group on its own line. A text with blanks could be two texts."""


def read_rpk_summary(lines: Sequence[Line], at: int, name: str) -> FoundText | None:
    """Read the summary above the table of ``rpk group describe``. Return None for other lines."""
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
    """Read the group that keys and values of a text describe, or return their error.

    With ``is_entered``, tables below the lines are about the group.
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
    """Read ``kaf group describe``, which shows no member ids. Return None for other lines."""
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
    """Read a line with groups as Java prints them: ``(groupId=orders, ...``. Else return None."""
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
    """Read ``kafkactl describe consumer-group -o yaml``. Return None for other lines."""
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
    """Read a topic or a line of noise in the output of ``kcat -L``. Return None for other lines."""
    text = lines[at].text.strip()
    match = _KCAT_TOPIC.fullmatch(text)
    if match is None:
        return FoundText("kcat -L") if _KCAT_OTHER.fullmatch(text) else None
    rest = takewhile(lambda one: _KCAT_PARTITION.fullmatch(one.text.strip()), lines[at + 1 :])
    shown, stated = sum(1 for _ in rest), int(match["count"])
    if shown != stated:
        message = f"topic {match['topic']!r} has {stated} partitions, {shown} are shown"
        error = error_at(name, lines[at].number, message)
        return FoundText("kcat -L", error=error, count=shown + 1)
    counts = {} if match["error"].strip() else {match["topic"]: stated}
    return FoundText("kcat -L", [DocumentRows(partition_counts=counts)], count=shown + 1)


Reader = Callable[[Sequence[Line], int, str], FoundText | None]
READERS: tuple[Reader, ...] = (
    *(read_rpk_summary, read_kaf, read_admin_client, read_yaml, read_kcat),
)
"""Readers of texts, in the order in which kassay tries them."""
