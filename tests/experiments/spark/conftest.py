from tests.experiments.cli.conftest import kassay

__all__ = ["kassay"]
