"""Source of an algorithm, and its header: TOML in a comment of Python or a package, or CWL.

References:
    PEP 723, inline script metadata.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from swathe.algorithms.cwl_document import is_cwl, parse_document
from swathe.algorithms.cwl_header import DOCUMENT, cwl_header, runnable_document
from swathe.algorithms.pack_folder import pack_folder
from swathe.algorithms.tar_files import MOST_PACKAGE_BYTES, is_tar, tar_files
from swathe.core.errors import AlgorithmError, NotFoundError, SettingsError
from swathe.core.format import size_text
from swathe.core.inputs import read_regular
from swathe.core.toml_settings import parse_toml

MOST_SOURCE_BYTES = 1_000_000
"""Largest file of Python with a header."""
DESCRIPTION, MAIN = "algorithm.toml", "algorithm.py"
"""Files of a package: its description, and its function `run`."""
MOST_HEADER_CHARACTERS = 65_536
"""Longest header: to parse one takes a second for each 100 kB, at worst."""
OPENING = re.compile(r"# /// ([a-zA-Z0-9-]{1,100})")
CLOSING = "# ///"
FORM = "a comment that begins with '# /// script' and ends with '# ///'"


@dataclass(frozen=True)
class Source:
    """Source of an algorithm or a library, with its header.

    Attributes:
        label: name of the file in errors.
        content: the file: Python, a document of CWL, or a package.
        header: values of its block `script`, of the description of the package, or of CWL.
        files: files of the package; of a single file, that file as `algorithm.py` or
            `algorithm.cwl`.
    """

    label: str
    content: bytes
    header: dict[str, Any]
    files: Mapping[str, bytes]

    @property
    def described_in(self) -> str:
        """Return the name of the file that has the header."""
        return next((name for name in (DESCRIPTION, MAIN) if name in self.files), DOCUMENT)


def read_source(path: Path) -> Source:
    """Read the source of an algorithm: a file of Python or CWL, a package, or a folder to pack.

    Raises:
        NotFoundError: If there is no such file.
        AlgorithmError: If it cannot be read, or has no header.
    """
    return parse_source(read_content(path), str(path))


def read_content(path: Path) -> bytes:
    """Read a file of Python or a package whole, or pack a folder.

    Raises:
        NotFoundError: If there is no such file.
        AlgorithmError: If it cannot be read.
    """
    try:
        if path.is_dir():
            return pack_folder(path)
        return read_regular(path, MOST_PACKAGE_BYTES)
    except FileNotFoundError as error:
        raise NotFoundError(f"{path}: no such file") from error
    except OSError as error:
        raise AlgorithmError(f"{path}: cannot be read: {error.strerror}") from error


def parse_source(content: bytes, label: str) -> Source:
    """Parse the header of a source.

    Args:
        content: a file of Python or CWL in UTF-8, or a package: a tar, plain or gzip.
        label: its name in errors.

    Raises:
        AlgorithmError: If it is too long or damaged, is not UTF-8, or has no header, two, or a
            damaged one.
    """
    if not is_tar(content):
        if is_cwl(content, label):
            return parse_cwl(content, label)
        return Source(label, content, _script_header(content, label), {MAIN: content})
    files = tar_files(content, label)
    homes = [name for name in (DESCRIPTION, MAIN) if name in files]
    if DESCRIPTION in homes and MAIN in homes and b"# /// script" in files[MAIN]:
        raise AlgorithmError(
            f"{label}: expected a header in {DESCRIPTION} or in {MAIN}, found both"
        )
    if not homes:
        raise AlgorithmError(f"{label}: expected {DESCRIPTION} or {MAIN} in it, found none")
    name = f"{label}: {homes[0]}"
    parse = parse_description if homes[0] == DESCRIPTION else _script_header
    return Source(label, content, parse(files[homes[0]], name), files)


def parse_cwl(content: bytes, label: str) -> Source:
    """Parse the header of a document of CWL.

    Raises:
        AlgorithmError: If it is none, or asks for what a run cannot have.
    """
    if not is_cwl(content):
        raise AlgorithmError(
            f"{label}: expected CWL with the key cwlVersion at the start of a line, found none"
        )
    header = cwl_header(parse_document(content, label), label)
    return Source(label, content, header, {DOCUMENT: content})


@lru_cache(maxsize=2)
def package_files(content: bytes, label: str) -> Mapping[str, bytes]:
    """Return the files of a source as they run; groups of an algorithm share them.

    Raises:
        AlgorithmError: As in `parse_source`.
    """
    if is_tar(content):
        return tar_files(content, label)
    if is_cwl(content):
        return {DOCUMENT: runnable_document(content, label)}
    return {MAIN: content}


def parse_description(content: bytes, label: str) -> dict[str, Any]:
    """Parse the description of a package, a file of TOML.

    Raises:
        AlgorithmError: If it is too long, or no TOML.
    """
    if len(content) > MOST_HEADER_CHARACTERS:
        raise AlgorithmError(
            f"{label}: expected at most {size_text(MOST_HEADER_CHARACTERS)}, found "
            f"{size_text(len(content))}"
        )
    try:
        return parse_toml(content, label)
    except SettingsError as error:
        raise AlgorithmError(str(error)) from error


def _script_header(content: bytes, label: str) -> dict[str, Any]:
    """Parse the block `script` of a file of Python."""
    if len(content) > MOST_SOURCE_BYTES:
        raise AlgorithmError(
            f"{label}: expected at most {size_text(MOST_SOURCE_BYTES)}, found more"
        )
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise AlgorithmError(f"{label}: expected UTF-8, found byte {error.start}") from error
    blocks = [block for kind, block in blocks_of(text) if kind == "script"]
    if len(blocks) != 1:
        count = "none" if not blocks else f"{len(blocks)} of them"
        raise AlgorithmError(f"{label}: expected {FORM}, found {count}")
    if len(blocks[0]) > MOST_HEADER_CHARACTERS:
        raise AlgorithmError(
            f"{label}: expected a header of at most {MOST_HEADER_CHARACTERS} characters, found "
            f"{len(blocks[0])}"
        )
    return parse_description(blocks[0].encode(), f"{label}, header")


def blocks_of(text: str) -> Iterator[tuple[str, str]]:
    """Yield type and content of each block of comments, as the expression of PEP 723 finds them.

    That expression takes quadratic time for many openings without an end; this is linear.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    # For each line the last closing of the run of comments that it belongs to.
    closings = [-1] * len(lines)
    last = -1
    for number in range(len(lines) - 1, -1, -1):
        line = lines[number]
        if line != "#" and not line.startswith("# "):
            last = -1
        elif last < 0 and line == CLOSING:
            last = number
        closings[number] = last
    number = 0
    while number < len(lines):
        opening = OPENING.fullmatch(lines[number])
        closing = closings[number]
        if opening is not None and closing > number + 1:
            content = lines[number + 1 : closing]
            yield opening[1], "".join(line[2:] + "\n" for line in content)
            number = closing
        number += 1
