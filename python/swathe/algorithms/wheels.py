"""Wheels in a package: pure Python, imported from their files without installing them.

References:
    PyPA specifications, binary distribution format (PEP 427).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath

WHEEL = re.compile(
    r"([A-Za-z0-9_.]{1,60})-([A-Za-z0-9_.+!]{1,40})(?:-[0-9][A-Za-z0-9_.]{0,20})?"
    r"-([A-Za-z0-9_.]{1,40})-none-any\.whl"
)
FORM = "a pure-Python wheel as NAME-1.0-py3-none-any.whl"
SUFFIX = ".whl"
MAGIC = b"PK\x03\x04"


def packages_of(paths: Iterable[str]) -> dict[str, str]:
    """Return the version of each package by its canonical name, by the names of wheels."""
    matches = (WHEEL.fullmatch(PurePosixPath(path).name) for path in paths)
    return {canonical_name(match[1]): match[2] for match in matches if match is not None}


def wheel_faults(files: Mapping[str, bytes]) -> Iterator[str]:
    """Yield which wheels of a package are none, or have programs of a machine."""
    for path, content in files.items():
        if path.endswith(SUFFIX):
            match = WHEEL.fullmatch(PurePosixPath(path).name)
            if match is None or "py3" not in match[3].split("."):
                yield f"{path}: expected {FORM}, found another name"
            elif not content.startswith(MAGIC):
                yield f"{path}: expected a wheel, found {content[:8]!r} at its start"


def canonical_name(name: str) -> str:
    """Return the name of a package as it is compared (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()
