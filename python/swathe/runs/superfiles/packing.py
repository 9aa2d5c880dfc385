"""Files as entries of a superfile, and entries as files."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from swathe.core.argument_checks import check_texts
from swathe.core.errors import NotFoundError, OptionError, OutputError, SourceError
from swathe.core.outputs import check_new, make_folder, write_file
from swathe.runs.superfiles.superfile_reader import Superfile, entry_groups
from swathe.runs.superfiles.superfile_writer import SuperfileWriter
from swathe.stores.copies import IS_FOLDER
from swathe.stores.listing import UnlistedObject, is_folder
from swathe.stores.object_ranges import PIECE_BYTES, read_pieces
from swathe.stores.objects import list_tree, object_identity, top_of
from swathe.stores.registry import native_stores

if TYPE_CHECKING:
    from swathe import _swathe
    from swathe.runs.superfiles.zip_index import Entry


class PackReport(NamedTuple):
    """What was packed or unpacked.

    Attributes:
        entries: number of entries.
        bytes: their bytes.
    """

    entries: int
    bytes: int


def pack_files(
    sources: Sequence[str | os.PathLike[str]],
    target: str | os.PathLike[str],
    *,
    recursive: bool = False,
    overwrite: bool = False,
) -> PackReport:
    """Write files, or other objects, into a superfile.

    Args:
        sources: paths, `NAME:path` or URLs; with `recursive` folders, too. An entry has the last
            part of a name, or what follows the folder.
        target: `STORE:path` or path of the superfile.
        recursive: whether folders are packed, with their sub-folders.
        overwrite: whether an object of this name is replaced.

    Raises:
        OptionError: If two files would get one name, or a source is a folder.
        NotFoundError, AccessError, SourceError: If a source cannot be read.
        OutputError: If the superfile cannot be written, exists, or is a source.
    """
    names = check_texts("sources", [os.fspath(each) for each in sources])
    engine, total_bytes, count = native_stores(), 0, 0
    output = os.fspath(target)
    with SuperfileWriter(output, overwrite=overwrite) as writer:
        identity = object_identity(engine, output)
        for entry_name, name in _entry_names(names, recursive):
            if object_identity(engine, name) == identity:
                raise OptionError(f"{output}: expected a new name, found one of the sources")
            source = _open_file(engine, name)
            pieces = read_pieces(source, 0, source.size)
            writer.add(entry_name, b"".join(pieces) if source.size <= PIECE_BYTES else pieces)
            total_bytes, count = total_bytes + source.size, count + 1
    return PackReport(count, total_bytes)


def _entry_names(names: Sequence[str], recursive: bool) -> Iterator[tuple[str, str]]:
    """Yield the names of entries with those of objects.

    Raises:
        SourceError: If what is in a folder cannot be read.
    """
    for name in names:
        if not recursive:
            yield _last_part(name), name
            continue
        top = top_of(name)
        for each in list_tree(name, None):
            if isinstance(each, UnlistedObject):
                raise SourceError(f"{each.path}: {each.reason}")
            is_below = each.path.startswith(top)
            yield each.path.removeprefix(top) if is_below else _last_part(each.path), each.path


def _save(pieces: Iterable[bytes], file: BinaryIO) -> None:
    file.writelines(pieces)


def _open_file(engine: _swathe.Stores, name: str) -> _swathe.Source:
    """Open an object.

    Raises:
        OptionError: If it is a folder.
    """
    try:
        return engine.open(name)
    except (NotFoundError, SourceError) as error:
        path = engine.local_path(name)
        if path.is_dir() if path is not None else is_folder(engine, name):
            raise OptionError(f"{name}: {IS_FOLDER}") from error
        raise


def _last_part(name: str) -> str:
    return name.rstrip("/").rpartition("/")[2].rpartition(":")[2]


def unpack_files(
    superfile: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    names: Collection[str] = (),
    overwrite: bool = False,
) -> PackReport:
    """Write entries of a superfile as files of this machine.

    Args:
        superfile: `STORE:path`, a URL or a path.
        folder: folder for the files; it is made if there is none.
        names: entries; by default all.
        overwrite: whether files that exist are replaced.

    Raises:
        NotFoundError: If there is no superfile or no such entry.
        AccessError, SourceError: If it cannot be read.
        FormatError: If it is no superfile, or damaged; what was unpacked before stays.
        OutputExistsError: If a file exists, and `overwrite` is false; then none is written.
        OutputError: If a file cannot be written, or a link leads to its folder.
    """
    content = Superfile(os.fspath(superfile), reads_all=False)
    entries = [content.entry(name) for name in names or content]
    top = make_folder(folder)
    by_folder: dict[Path, list[str]] = {}
    for each in entries:
        path = top / each.name
        by_folder.setdefault(path.parent, []).append(path.name)
    for parent, files in by_folder.items():
        _refuse_links(top, parent)
        check_new(parent, files, overwrite=overwrite)
    for name, pieces in _contents(content, entries):
        path = make_folder((top / name).parent) / Path(name).name
        write_file(path, partial(_save, pieces), overwrite=overwrite)
    return PackReport(len(entries), sum(each.size for each in entries))


def _refuse_links(top: Path, folder: Path) -> None:
    """Refuse a folder that links lead to: its files would be elsewhere.

    Raises:
        OutputError: If one below the top is a link.
    """
    while folder != top:
        if folder.is_symlink():
            raise OutputError(f"{folder}: cannot unpack into it: expected a folder, found a link")
        folder = folder.parent


def _contents(
    content: Superfile, entries: Sequence[Entry]
) -> Iterator[tuple[str, Iterable[bytes]]]:
    """Yield the contents of entries in pieces; short ones are read together."""
    for together in entry_groups(entries, PIECE_BYTES):
        if together[0].size > PIECE_BYTES:
            yield together[0].name, content.pieces(together[0].name)
            continue
        for name, data in content.read(each.name for each in together).items():
            yield name, [data]
