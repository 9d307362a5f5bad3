"""Captures of all releases."""

from tests.conftest import ROOT
from tests.experiments.sources import layouts
from tests.experiments.sources.layouts import MemberLine, OffsetLine

CAPTURES = ROOT / "examples" / "captures"
UUIDS = tuple(f"0{n}e1c2a3-11aa-4bcd-8e9f-0123456789a{n}" for n in range(3))


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
