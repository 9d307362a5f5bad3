"""Renders groups as each release's kafka-consumer-groups.sh prints them."""

from dataclasses import dataclass

OLD_WIDTHS = (30, 30, 10, 15, 15, 15)
GLUED_WIDTHS = (30, 10, 15, 15, 10)
LEAST_PAD = 15


@dataclass(frozen=True)
class Line:
    """One partition's row, or an idle member's."""

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
class Who:
    """One member's row."""

    group: str
    consumer: str
    instance: str | None
    host: str
    client: str
    assignment: tuple[tuple[str, tuple[int, ...]], ...]
    epoch: int
    target: tuple[tuple[str, tuple[int, ...]], ...]


def dashed(value):
    return "-" if value is None else str(value)


def unknown(value):
    return "unknown" if value is None else str(value)


def figures(line, missing=dashed):
    return [missing(value) for value in (line.partition, line.current, line.end, line.lag)]


def owner(line):
    return "none" if line.consumer is None else f"{line.client}_{line.host}"


def offsets_0_9(lines):
    head = "GROUP, TOPIC, PARTITION, CURRENT OFFSET, LOG END OFFSET, LAG, OWNER\n"
    return head + "".join(
        ", ".join([line.group, line.topic, *figures(line, unknown), owner(line)]) + "\n"
        for line in lines
    )


def offsets_0_10_0(lines):
    names = ["GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "OWNER"]
    rows = [[line.group, line.topic, *figures(line, unknown), owner(line)] for line in lines]
    return "".join(
        " ".join(f"{cell:<{width}}" for cell, width in zip(row, OLD_WIDTHS, strict=False))
        + f" {row[-1]}\n"
        for row in [names, *rows]
    )


def offsets_0_10_2(lines):
    names = ["TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG"]
    tail = ["CONSUMER-ID", "HOST", "CLIENT-ID"]
    rows = [
        [dashed(line.topic), *figures(line), *map(dashed, (line.consumer, line.host, line.client))]
        for line in lines
    ]
    text = "Note: This will only show information about consumers that use the Java API.\n\n"
    for row in [names + tail, *rows]:
        cells = [f"{cell:<{width}} " for cell, width in zip(row, GLUED_WIDTHS, strict=False)]
        text += "".join(cells) + f"{row[5]:<50}{row[6]:<30} {row[7]}\n"
    return text


def adaptive(rows, fixed, *, last=True):
    """Lay rows out with columns as wide as their widest cell, or at least as ``fixed`` says."""
    widths = [max(least, *(len(row[index]) for row in rows)) for index, least in enumerate(fixed)]
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
        partition, *offsets = figures(line)
        cells = [line.group] * group + [line.topic, partition] + ["-"] * verbose + offsets
        rows.append(cells + [dashed(value) for value in (line.consumer, line.host, line.client)])
    least = {"PARTITION": 10, "GROUP": 0 if group else LEAST_PAD}
    return adaptive(rows, [least.get(name, LEAST_PAD) for name in names])


def old_parts(assignment):
    return ", ".join(f"{t}({','.join(map(str, ps))})" for t, ps in assignment) or "-"


def new_parts(assignment):
    return ";".join(f"{t}:{','.join(map(str, ps))}" for t, ps in assignment) or "-"


def member_cells(who, *, static):
    blank = who.instance or ""
    return [who.group, who.consumer, *([blank] * static), who.host, who.client, size(who)]


def size(who):
    return str(sum(len(numbers) for _, numbers in who.assignment))


def member_names(*, static):
    names = ["GROUP", "CONSUMER-ID", *["GROUP-INSTANCE-ID"] * static]
    return [*names, "HOST", "CLIENT-ID", "#PARTITIONS"]


def members_plain(whos):
    static = any(who.instance for who in whos)
    rows = [member_names(static=static), *(member_cells(who, static=static) for who in whos)]
    return adaptive(rows, [0, *[LEAST_PAD] * (len(rows[0]) - 1)], last=False)


def members_verbose_2(whos):
    static = any(who.instance for who in whos)
    rows = [[*member_names(static=static), "ASSIGNMENT"]]
    rows += [[*member_cells(who, static=static), old_parts(who.assignment)] for who in whos]
    return adaptive(rows, [0, *[LEAST_PAD] * (len(rows[0]) - 1)])


def members_verbose_4(whos, *, upgraded):
    static = any(who.instance for who in whos)
    more = ["CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT"]
    rows = [[*member_names(static=static), *more, *["UPGRADED"] * upgraded]]
    for who in whos:
        cells = [str(who.epoch), new_parts(who.assignment), str(who.epoch), new_parts(who.target)]
        rows.append([*member_cells(who, static=static), *cells, *["true"] * upgraded])
    return adaptive(rows, [0, *[LEAST_PAD] * (len(rows[0]) - 1)], last=upgraded)


@dataclass(frozen=True)
class Whole:
    """A group as a whole."""

    group: str
    coordinator: str
    node: int
    strategy: str
    state: str
    members: int
    epoch: int | None


def state(whole, *, verbose):
    """Render ``--state``, of release 4 if ``verbose``."""
    epochs = ["GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH"]
    head = ["GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE"] + epochs * verbose
    cells = [whole.group, f"{whole.coordinator}  ({whole.node})", whole.strategy, whole.state]
    cells += [dashed(whole.epoch)] * 2 * verbose
    rows = [[*head, "#MEMBERS"], [*cells, str(whole.members)]]
    return adaptive(rows, [15, 25, 20, 20, *[15, 25] * verbose, 0])
