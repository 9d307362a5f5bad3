"""HTML and Markdown reports of studies and histories."""

from pathlib import Path

TEMPLATES = Path(__file__).parent / "templates"
