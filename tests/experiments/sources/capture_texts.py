"""Captures of all releases, and a function that damages them."""

from tests.conftest import ROOT
from tests.experiments.sources import layouts
from tests.experiments.sources.layouts import MemberLine, OffsetLine

CAPTURES = ROOT / "examples" / "captures"
LOG_LINE = (
    "[2024-05-01 10:00:00,001] WARN Connection to node -1 could not be established. "
    "(org.apache.kafka.clients.NetworkClient)"
)
UUIDS = tuple(f"0{n}e1c2a3-11aa-4bcd-8e9f-0123456789a{n}" for n in range(3))
NUMBERS = "0123456789"


def old_texts():
    rows = [
        OffsetLine("g", f"orders{n}", n, 5 + n, 70 + n, f"app-{UUIDS[n]}", f"/10.0.0.{n}2", "app")
        for n in range(3)
    ]
    members = [
        MemberLine("g", f"app-{UUIDS[n]}", f"i{n}" if n else None, "/10.0.0.1", "app", a, 3, a)
        for n, a in enumerate([(), (("t", (0, 12)), ("u", (3,))), (("t", (1,)),)])
    ]
    return [
        layouts.offsets_0_9(rows),
        layouts.offsets_0_10_0(rows),
        layouts.offsets_0_10_2(rows),
        layouts.offsets_adaptive(rows, group=False),
        layouts.members_plain(members),
        layouts.members_verbose_2(members),
        layouts.members_verbose_4(members, upgraded=True),
    ]


def texts():
    """Return captures of a real broker and rendered captures of older releases."""
    files = sorted(CAPTURES.glob("*/*.txt"))
    return [file.read_text() for file in files if file.stat().st_size < 8000] + old_texts()


def damage(text, random):
    """Damage a text in a random way."""
    lines = text.split("\n")
    at, position = random.randrange(len(lines)), random.randrange(len(text))
    match random.randrange(9):
        case 0:
            return text[:position]
        case 1:
            return text[:position] + text[position + random.randrange(1, 40) :]
        case 2:
            return "\n".join([*lines[:at], lines[random.randrange(len(lines))], *lines[at:]])
        case 3:
            return text[:position] + random.choice(" \t\n\r-,:;()/'0é\x00\u2028") + text[position:]
        case 4:
            return text[:position] + random.choice(" -0x/\n") + text[position + 1 :]
        case 5:
            return "\n".join([*lines[:at], LOG_LINE, *lines[at:]])
        case 6:
            return "\n".join(line.strip() for line in lines)
        case 7:
            return "\n".join([*lines[:at], lines[at][: random.randrange(120)], *lines[at + 1 :]])
        case _:
            digits = [i for i, c in enumerate(text) if c in NUMBERS]
            position = random.choice(digits) if digits else position
            return (
                text[:position]
                + random.choice(NUMBERS) * random.choice([1, 1, 30])
                + text[position:]
            )
