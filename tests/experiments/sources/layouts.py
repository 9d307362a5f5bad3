"""Render groups in the layout of each release of kafka-consumer-groups.sh."""

from dataclasses import dataclass

OLD_WIDTHS = (30, 30, 10, 15, 15, 15)
JOINED_WIDTHS = (30, 10, 15, 15, 10)
MIN_WIDTH = 15


@dataclass(frozen=True)
class OffsetLine:
    """Row of a partition, or of an idle member."""

    group: str
    topic: str | None
    partition: int | None
    current: int | None
    end: int | None
    consumer: str | None
    host: str | None
    client: str | None

    @property
    def lag(self):
        known = self.current is not None and self.end is not None
        return self.end - self.current if known else None


@dataclass(frozen=True)
class MemberLine:
    """Row of a member."""

    group: str
    consumer: str
    instance: str | None
    host: str
    client: str
    assignment: tuple[tuple[str, tuple[int, ...]], ...]
    epoch: int
    target: tuple[tuple[str, tuple[int, ...]], ...]


def or_dash(value):
    return "-" if value is None else str(value)


def or_unknown(value):
    return "unknown" if value is None else str(value)


def number_cells(line, missing=or_dash):
    return [missing(value) for value in (line.partition, line.current, line.end, line.lag)]


def owner(line):
    return "none" if line.consumer is None else f"{line.client}_{line.host}"


def offsets_0_9(lines):
    head = "GROUP, TOPIC, PARTITION, CURRENT OFFSET, LOG END OFFSET, LAG, OWNER\n"
    return head + "".join(
        ", ".join([line.group, line.topic, *number_cells(line, or_unknown), owner(line)]) + "\n"
        for line in lines
    )


def offsets_0_10_0(lines):
    names = ["GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "OWNER"]
    rows = [
        [line.group, line.topic, *number_cells(line, or_unknown), owner(line)] for line in lines
    ]
    return "".join(
        " ".join(f"{cell:<{width}}" for cell, width in zip(row, OLD_WIDTHS, strict=False))
        + f" {row[-1]}\n"
        for row in [names, *rows]
    )


def offsets_0_10_2(lines):
    names = ["TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG"]
    tail = ["CONSUMER-ID", "HOST", "CLIENT-ID"]
    rows = [
        [
            or_dash(line.topic),
            *number_cells(line),
            *map(or_dash, (line.consumer, line.host, line.client)),
        ]
        for line in lines
    ]
    text = "Note: This will only show information about consumers that use the Java API.\n\n"
    for row in [names + tail, *rows]:
        cells = [f"{cell:<{width}} " for cell, width in zip(row, JOINED_WIDTHS, strict=False)]
        text += "".join(cells) + f"{row[5]:<50}{row[6]:<30} {row[7]}\n"
    return text


def adaptive(rows, minimum_widths, *, last=True):
    """Render columns as wide as their widest cell, with minimum widths."""
    widths = [
        max(minimum, *(len(row[index]) for row in rows))
        for index, minimum in enumerate(minimum_widths)
    ]
    text = ""
    for row in rows:
        cells = [f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)]
        if last:
            cells[-1] = row[-1]
        text += "\n" + " ".join(cells) + ("" if last else " ")
    return text + "\n"


def offsets_adaptive(lines, *, group=True, verbose=False):
    names = ["GROUP"] * group + ["TOPIC", "PARTITION"] + ["LEADER-EPOCH"] * verbose
    names += ["CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID", "HOST", "CLIENT-ID"]
    rows = [names]
    for line in lines:
        partition, *offsets = number_cells(line)
        cells = [line.group] * group + [line.topic, partition] + ["-"] * verbose + offsets
        rows.append(cells + [or_dash(value) for value in (line.consumer, line.host, line.client)])
    minimum_widths = {"PARTITION": 10, "GROUP": 0 if group else MIN_WIDTH}
    return adaptive(rows, [minimum_widths.get(name, MIN_WIDTH) for name in names])


def parentheses_notation(assignment):
    return ", ".join(f"{t}({','.join(map(str, ps))})" for t, ps in assignment) or "-"


def colon_notation(assignment):
    return ";".join(f"{t}:{','.join(map(str, ps))}" for t, ps in assignment) or "-"


def member_cells(member, *, static):
    blank = member.instance or ""
    return [
        member.group,
        member.consumer,
        *([blank] * static),
        member.host,
        member.client,
        partition_count(member),
    ]


def partition_count(member):
    return str(sum(len(numbers) for _, numbers in member.assignment))


def member_names(*, static):
    names = ["GROUP", "CONSUMER-ID", *["GROUP-INSTANCE-ID"] * static]
    return [*names, "HOST", "CLIENT-ID", "#PARTITIONS"]


def members_plain(members):
    static = any(member.instance for member in members)
    rows = [
        member_names(static=static),
        *(member_cells(member, static=static) for member in members),
    ]
    return adaptive(rows, [0, *[MIN_WIDTH] * (len(rows[0]) - 1)], last=False)


def members_verbose_2(members):
    static = any(member.instance for member in members)
    rows = [[*member_names(static=static), "ASSIGNMENT"]]
    rows += [
        [*member_cells(member, static=static), parentheses_notation(member.assignment)]
        for member in members
    ]
    return adaptive(rows, [0, *[MIN_WIDTH] * (len(rows[0]) - 1)])


def members_verbose_4(members, *, upgraded):
    static = any(member.instance for member in members)
    more = ["CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT"]
    rows = [[*member_names(static=static), *more, *["UPGRADED"] * upgraded]]
    for member in members:
        cells = [
            str(member.epoch),
            colon_notation(member.assignment),
            str(member.epoch),
            colon_notation(member.target),
        ]
        rows.append([*member_cells(member, static=static), *cells, *["true"] * upgraded])
    return adaptive(rows, [0, *[MIN_WIDTH] * (len(rows[0]) - 1)], last=upgraded)


@dataclass(frozen=True)
class StateLine:
    """Row of a group in the state table."""

    group: str
    coordinator: str
    node: int
    strategy: str
    state: str
    members: int
    epoch: int | None


def state(state_line, *, verbose):
    """Render ``--state``, of release 4 if ``verbose``."""
    epochs = ["GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH"]
    head = ["GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE"] + epochs * verbose
    cells = [
        state_line.group,
        f"{state_line.coordinator}  ({state_line.node})",
        state_line.strategy,
        state_line.state,
    ]
    cells += [or_dash(state_line.epoch)] * 2 * verbose
    rows = [[*head, "#MEMBERS"], [*cells, str(state_line.members)]]
    return adaptive(rows, [15, 25, 20, 20, *[15, 25] * verbose, 0])
