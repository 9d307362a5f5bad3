"""Ready-made scripts, by name."""

from importlib.resources import files
from pathlib import Path

from kassay.experiments.simulation.script import Script
from kassay.experiments.simulation.script_parser import parse_script
from kassay.reference.documents.config_nodes import format_choices
from kassay.reference.model.errors import InputError

_HERE = files(__package__)
SCENARIOS = {
    entry.name.removesuffix(".yaml"): entry
    for entry in sorted(_HERE.iterdir(), key=lambda entry: entry.name)
    if entry.name.endswith(".yaml")
}
"""Names and files."""


def load_script(script: str) -> Script:
    """Read a script from a file, or a ready-made one by its name.

    Raises
    ------
    InvalidGroupError
        If there is neither, or it is not a script.

    Examples
    --------
    >>> load_script("crash").name
    'crash'
    """
    if script in SCENARIOS:
        name = f"{script}.yaml"
        return parse_script(SCENARIOS[script].read_text(encoding="utf-8"), name)
    file = Path(script)
    if not file.exists() and "/" not in script and not file.suffix:
        known = format_choices(SCENARIOS)
        raise InputError(f"no file or ready-made script is called {script!r}, try {known}")
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise InputError(f"{file}: not UTF-8 text: byte 0x{byte:02x}") from None
    return parse_script(text, script)
