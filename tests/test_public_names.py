"""The documented names of the package."""

import pytest

import kassay

FURTHER = ["UpstreamError", "LivelockError", "certificate_errors", "default_levels", "__version__"]


@pytest.mark.parametrize("name", sorted({*kassay.__all__, *FURTHER}))
def test_every_documented_name_can_be_imported(name: str) -> None:
    assert getattr(kassay, name) is not None
    assert name in dir(kassay)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'solv'"):
        kassay.solv  # noqa: B018
