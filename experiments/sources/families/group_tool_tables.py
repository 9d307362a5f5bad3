"""Parse the members tables of ``kafka-share-groups.sh`` and ``kafka-streams-groups.sh``.

Kafka 4.1 to 4.3 print them with ``--describe --members``, with and without ``--verbose``.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from kassay.reference.documents.text_files import error_at

Tasks = dict[str, dict[str, list[int]]]
"""Partition numbers by topic or subtopology, by role: active, standby, warmup."""
_SHARE = re.compile(r"GROUP CONSUMER-ID HOST CLIENT-ID #PARTITIONS (MEMBER-EPOCH )?ASSIGNMENT")
_STREAMS = re.compile(
    r"GROUP (TARGET-ASSIGNMENT-EPOCH TOPOLOGY-EPOCH )?MEMBER (MEMBER-PROTOCOL MEMBER-EPOCH )?"
    r"PROCESS CLIENT-ID ASSIGNMENTS"
)
_OTHER = re.compile(r"GROUP TOPIC PARTITION .*(START-OFFSET|OFFSET-LAG).*")
_SECTION = re.compile(r"(?P<role>(TARGET-)?(ACTIVE|STANDBY|WARMUP)):(?P<lists>( \S+:\[[\d,]*\];)*)")
_LIST = re.compile(r"(\S+):\[([\d,]*)\];")
_SHARED_CELL = re.compile(r"\S:\d+(,\d+)*(;\S+:\d+(,\d+)*)*\s*$")
_MAX_MESSAGES = 20
"""Maximum number of lines before the header."""
_SHARE_LIST = re.compile(r"(?P<topic>[^:;]+):(?P<numbers>\d+(,\d+)*)")


@dataclass(frozen=True, slots=True)
class FamilyMemberRow:
    """Row of a members table: the member, its process and its current assignment."""

    group: str
    member: str
    process: str | None  # of a Streams group
    assigned: Tasks


def is_family_table(text: str) -> bool:
    """Return whether a text is a table of the tools for share groups or Streams groups.

    Old releases of ``kafka-consumer-groups.sh`` print the columns of share groups, with
    assignments such as ``orders(0,1)`` instead of ``orders:0,1``.
    """
    lines = text.splitlines()
    for number, line in enumerate(lines[:_MAX_MESSAGES]):
        header = " ".join(line.split())
        if _SHARE.fullmatch(header) and "MEMBER-EPOCH" not in header:
            return any(_SHARED_CELL.search(row) for row in lines[number + 1 :])
        if any(form.fullmatch(header) for form in (_SHARE, _STREAMS, _OTHER)):
            return True
    return False


def read_member_rows(text: str, *, name: str) -> Iterator[FamilyMemberRow]:
    """Yield the rows of a members table. ``name`` is the name of the file in errors.

    Lines before the header are messages, and are ignored.
    """
    columns: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split()
        header = " ".join(words)
        if _OTHER.fullmatch(header):
            raise error_at(
                name, number, "a table of offsets has no members; add the option --members", line
            )
        if _SHARE.fullmatch(header) or _STREAMS.fullmatch(header):
            columns = words
        elif columns and words:
            cells = line.split(maxsplit=len(columns) - 1)
            if len(cells) < len(columns) - 1:
                raise error_at(name, number, "the line is not a complete row of its table", line)
            yield _row(dict(zip(columns, [*cells, ""], strict=False)), line, name, number)


def _row(cells: dict[str, str], line: str, name: str, number: int) -> FamilyMemberRow:
    if "PROCESS" in cells:
        assigned = _tasks(cells["ASSIGNMENTS"].strip())
        member, process = cells["MEMBER"], cells["PROCESS"]
    else:
        assigned = _partitions(cells["ASSIGNMENT"].strip())
        member, process = cells["CONSUMER-ID"], None
    if assigned is None:
        raise error_at(name, number, "the assignment is cut or has an unknown form", line)
    row = FamilyMemberRow(cells["GROUP"], member, process, assigned)
    listed = sum(map(len, assigned["active"].values()))
    if "#PARTITIONS" in cells and cells["#PARTITIONS"] != str(listed):
        message = f"member {member!r} has {cells['#PARTITIONS']} partitions but lists {listed}"
        raise error_at(name, number, message, line)
    return row


def _partitions(text: str) -> Tasks | None:
    """Parse partitions such as ``orders:0,1;lowrate:2``, or return None for another form."""
    active: dict[str, list[int]] = {}
    for part in text.split(";") if text not in ("", "-") else ():
        match = _SHARE_LIST.fullmatch(part)
        if match is None:
            return None
        active[match["topic"]] = [int(number) for number in match["numbers"].split(",")]
    return {"active": active}


def _tasks(text: str) -> Tasks | None:
    """Parse current tasks such as ``ACTIVE: 0:[0,2]; 1:[0];``, or return None for another form."""
    found: Tasks = {"active": {}, "standby": {}, "warmup": {}}
    if " ".join(match[0].strip() for match in _SECTION.finditer(text)) != " ".join(text.split()):
        return None
    for section in _SECTION.finditer(text):
        if not section["role"].startswith("TARGET-"):
            found[section["role"].lower()] = {
                name: [int(number) for number in numbers.split(",") if number]
                for name, numbers in _LIST.findall(section["lists"])
            }
    return found
