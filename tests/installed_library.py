"""Client libraries that tests need."""

import pytest

from kassay.experiments.implementations.client_libraries import (
    Library,
    is_installed,
    parse_library_version,
)


def require_library(name: str) -> tuple[Library, str]:
    """Return a library, LIBRARY[@VERSION], and its version. Skip the test if it is missing."""
    library, version = parse_library_version(name)
    if not is_installed(library, version):
        pytest.skip(f"not installed: run kassay libraries install {name}")
    return library, version
