"""Maps the top-level folders into the one package that is installed: ``kassay``."""

import tempfile

from setuptools import find_packages, setup

_FOLDERS = ("reference", "solver", "experiments")
_BUILD = tempfile.TemporaryDirectory(prefix="kassay-build-")

setup(
    packages=["kassay", "kassay.clients"]
    + [
        f"kassay.{name}"
        for folder in _FOLDERS
        for name in (folder, *(f"{folder}.{p}" for p in find_packages(folder)))
    ],
    package_dir={"kassay": "kassay"} | {f"kassay.{folder}": folder for folder in _FOLDERS},
    # A folder ``build`` in the clone would add modules of earlier builds to the package.
    options={"build": {"build_base": _BUILD.name}},
)
