"""Built-in simulation scripts."""

from importlib.resources import files
from pathlib import Path

from kassay.experiments.simulation.scripts.script import Script
from kassay.experiments.simulation.scripts.script_parser import parse_script
from kassay.reference.documents.config_nodes import format_choices
from kassay.reference.model.errors import InputError

BUILT_IN_SCRIPTS = {
    entry.name.removesuffix(".yaml"): entry
    for entry in sorted(files(__package__).iterdir(), key=lambda entry: entry.name)
    if entry.name.endswith(".yaml")
}
"""Built-in scripts by name."""


def load_script(script: str) -> Script:
    """Load a built-in script by name, or read a script file."""
    if script in BUILT_IN_SCRIPTS:
        return parse_script(BUILT_IN_SCRIPTS[script].read_text(encoding="utf-8"), f"{script}.yaml")
    file = Path(script)
    if not file.exists() and "/" not in script and not file.suffix:
        known = format_choices(BUILT_IN_SCRIPTS)
        raise InputError(
            f"{script!r} is neither a file nor a built-in script; built-in scripts: {known}"
        )
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise InputError(f"{file}: the file must be text in UTF-8, got byte 0x{byte:02x}") from None
    return parse_script(text, script)
