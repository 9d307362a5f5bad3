"""Captures to damage, and ways to damage them."""

from dataclasses import replace

from kassay.experiments.sources.describe_output import parse_text
from tests.conftest import ROOT
from tests.experiments.sources import layouts
from tests.experiments.sources.layouts import Line, Who

CAPTURES = ROOT / "examples" / "captures"
STRAY = (
    "[2024-05-01 10:00:00,001] WARN Connection to node -1 could not be established. "
    "(org.apache.kafka.clients.NetworkClient)"
)
UUIDS = tuple(f"0{n}e1c2a3-11aa-4bcd-8e9f-0123456789a{n}" for n in range(3))
NUMBERS = "0123456789"


def old_texts():
    rows = [
        Line("g", f"orders{n}", n, 5 + n, 70 + n, f"app-{UUIDS[n]}", f"/10.0.0.{n}2", "app")
        for n in range(3)
    ]
    whos = [
        Who("g", f"app-{UUIDS[n]}", f"i{n}" if n else None, "/10.0.0.1", "app", a, 3, a)
        for n, a in enumerate([(), (("t", (0, 12)), ("u", (3,))), (("t", (1,)),)])
    ]
    return [
        layouts.offsets_0_9(rows),
        layouts.offsets_0_10_0(rows),
        layouts.offsets_0_10_2(rows),
        layouts.offsets_adaptive(rows, group=False),
        layouts.members_plain(whos),
        layouts.members_verbose_2(whos),
        layouts.members_verbose_4(whos, upgraded=True),
    ]


def texts():
    """All texts: own captures of a real broker and older releases' layouts."""
    files = sorted(CAPTURES.glob("*/*.txt"))
    return [file.read_text() for file in files if file.stat().st_size < 8000] + old_texts()


def rows_of(text, *, name="x"):
    """The rows of a text without their lines; an error passes through."""
    tables = parse_text(text, name=name).tables
    return [replace(row, line=0) for table in tables for row in table.rows]


def damage(text, random):
    """Damage a text in one of many ways."""
    lines = text.split("\n")
    at, spot = random.randrange(len(lines)), random.randrange(len(text))
    match random.randrange(9):
        case 0:
            return text[:spot]
        case 1:
            return text[:spot] + text[spot + random.randrange(1, 40) :]
        case 2:
            return "\n".join([*lines[:at], lines[random.randrange(len(lines))], *lines[at:]])
        case 3:
            return text[:spot] + random.choice(" \t\n\r-,:;()/'0é\x00\u2028") + text[spot:]
        case 4:
            return text[:spot] + random.choice(" -0x/\n") + text[spot + 1 :]
        case 5:
            return "\n".join([*lines[:at], STRAY, *lines[at:]])
        case 6:
            return "\n".join(line.strip() for line in lines)
        case 7:
            return "\n".join([*lines[:at], lines[at][: random.randrange(120)], *lines[at + 1 :]])
        case _:
            digits = [i for i, c in enumerate(text) if c in NUMBERS]
            where = random.choice(digits) if digits else spot
            return text[:where] + random.choice(NUMBERS) * random.choice([1, 1, 30]) + text[where:]
