"""Decide whether a file may be written, and replace files whole or not at all.

A file that is read is never replaced. A file that exists is replaced only with `overwrite`. A
file gets its name only when it is complete. All outputs of the package use this module. The
engine has the same rules for the results of batches, in `crates/engine/src/output`.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, BinaryIO

from swathe.core import zarr_names
from swathe.core.errors import OutputError, OutputExistsError, SwatheError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from swathe._swathe import OutputKind

NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
"""Error numbers of file systems without hard links."""
HEAD_BYTES = 1 << 16
"""Bytes read of a trace to recognise it; a line is shorter."""
_traces: list[Path] = []
"""Files that events of this process are written to; no output replaces them."""
NULL = "null:"
"""Output that only counts: results are made, hashed and dropped, and there is no manifest file."""
EXISTS = "exists already; give --overwrite (overwrite=True in Python) to replace it"


def output_kind(path: Path) -> OutputKind:
    """Return the kind of an output from its name.

    Raises:
        OutputError: If files with this suffix are not supported.
    """
    if str(path) == NULL:
        return "null"
    match path.suffix.lower():
        case ".zip":
            return "zip"
        case ".tar":
            return "tar"
        case ".fits" | ".fit" | ".fts":
            return "fits"
        case ".gz" | ".bz2" | ".tgz" | ".fz" | ".7z" | ".csv" | ".png" | ".npy":
            raise OutputError(f"{path}: expected a folder, *.zip, *.tar or *.fits as output")
        case _:
            return "folder"


def check_output(
    path: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    sources: Iterable[str | os.PathLike[str]] = (),
) -> None:
    """Check whether a file may be written, before any reading or measuring starts.

    Args:
        path: file to write.
        overwrite: whether an existing file may be replaced.
        sources: local files that are read; none of them is ever replaced.

    Raises:
        OutputExistsError: If the file exists and `overwrite` is false.
        OutputError: If the file is a source (also through links), a folder or a device, or if its
            folder does not exist.
    """
    output = Path(path)
    _refuse_trace(output)
    try:
        status: os.stat_result | None = output.stat()
    except OSError:
        status = None
    if status is None and not output.is_symlink():
        check_folder(output.parent, output)
        return
    if status is not None:
        refuse_sources({_identity(status): output}, sources)
        if not stat.S_ISREG(status.st_mode) and not is_zarr_folder(output):
            kind = "a folder" if stat.S_ISDIR(status.st_mode) else "not a regular file"
            raise OutputError(f"{output}: cannot write: it is {kind}")
    if not overwrite:
        raise OutputExistsError(f"{output}: {EXISTS}")


def is_zarr_folder(path: Path) -> bool:
    """Check whether a folder is a Zarr by its name and content: an output may replace it."""
    return path.suffix == ".zarr" and any((path / name).is_file() for name in zarr_names.MARKS)


def check_trace(path: Path, *, rotates: bool = False) -> None:
    """Check whether events may be written to a file: it must be new, empty or a trace.

    Args:
        path: file to write.
        rotates: whether a large file is renamed to `FILE.1`, and `FILE.1` to `FILE.2`.

    Raises:
        OutputError: If a file exists that holds anything but events.
    """
    _check_events(path)
    if rotates:
        for old in sorted(path.parent.glob(f"{escape(path.name)}.*")):
            if old.name.rpartition(".")[2].isdecimal():
                _check_events(old)


def reserve_for_trace(*files: Path) -> None:
    """Refuse these files as outputs from now on: events of this process are written to them."""
    _traces[:] = files


def _refuse_trace(output: Path) -> None:
    for trace in _traces:
        if os.path.realpath(output) == os.path.realpath(trace) or (
            identities([output]).keys() & identities([trace]).keys()
        ):
            raise OutputError(
                f"{output}: cannot write: events are recorded in this file; give another name"
            )


def _check_events(path: Path) -> None:
    try:
        if not path.is_file():
            return
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError:
        return  # opening it for writing raises the error
    # A FITS header may contain the name of an event, but no FITS file begins with a date.
    if head and not (head.lstrip().startswith(b"DATE=") and b"NL.EVNT=" in head):
        raise OutputError(f"{path}: exists and is not a trace; give another name")


def check_folder(folder: Path, output: Path) -> None:
    """Check whether the folder of an output exists.

    Raises:
        OutputError: If it does not exist, or is a file.
    """
    if folder.is_dir():
        return
    what = "exists and is not a folder" if folder.exists() else "does not exist"
    raise OutputError(f"{output}: cannot write: the folder {folder} {what}")


def make_folder(folder: str | os.PathLike[str]) -> Path:
    """Make a folder for results, with its parents.

    Raises:
        OutputError: If it cannot be made, or a file has this name.
    """
    path = Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise OutputError(f"{path}: exists and is not a folder") from error
    except OSError as error:
        raise OutputError(f"{path}: cannot make the folder: {error.strerror}") from error
    return path


def refuse_inside(folder: Path, roots: Mapping[str, str]) -> None:
    """Refuse a folder for results that is inside a folder of sources, also through links.

    Args:
        folder: folder for results; it need not exist.
        roots: what each folder of sources is, by its path.

    Raises:
        OutputError: If one is; names both.
    """
    real = Path(os.path.realpath(folder))
    for root, what in roots.items():
        if real.is_relative_to(os.path.realpath(root)):
            raise OutputError(
                f"{folder}: expected a folder outside of all stores, found one in {what}, {root}; "
                "give another folder"
            )


def refuse_sources(
    outputs: dict[tuple[int, int], Path], sources: Iterable[str | os.PathLike[str]]
) -> None:
    """Refuse outputs that are sources, by device and inode.

    Args:
        outputs: files that would be replaced, by device and inode.
        sources: local files that are read; missing ones are ignored.

    Raises:
        OutputError: If one is; names the output and the source.
    """
    for source in sources:
        try:
            output = outputs.get(_identity(os.stat(source)))
        except (OSError, ValueError):
            continue
        if output is not None:
            raise OutputError(
                f"{output}: cannot write: it is the source {os.fsdecode(source)}; give another name"
            )


def identities(files: Iterable[Path]) -> dict[tuple[int, int], Path]:
    """Return files by device and inode; missing files are left out."""
    paths = {}
    for file in files:
        with suppress(OSError, ValueError):
            paths[_identity(file.stat())] = file
    return paths


def refuse_if_sources(
    paths: Iterable[Path], sources: Callable[[], Iterable[str | os.PathLike[str]]]
) -> None:
    """Refuse files that are sources, if they would be replaced or removed.

    Args:
        paths: existing files.
        sources: function that returns the local files that are read; called only if a path exists.

    Raises:
        OutputError: If one is; names the file and the source.
    """
    if outputs := identities(paths):
        refuse_sources(outputs, sources())


def check_new(
    folder: Path,
    names: Iterable[str],
    *,
    overwrite: bool = False,
    sources: Callable[[], Iterable[str | os.PathLike[str]]] = tuple,
) -> None:
    """Check whether files of these names may be written into a folder.

    Args:
        folder: folder to write to; it need not exist.
        names: file names, compared with one listing of the folder.
        overwrite: whether existing files may be replaced.
        sources: function that returns the local files that are read; called only if a name exists.

    Raises:
        OutputExistsError: If a file exists and `overwrite` is false.
        OutputError: If a file is a source.
    """
    names = list(names)
    for trace in _traces:
        if trace.name in names:
            _refuse_trace(folder / trace.name)
    try:
        existing_names = set(os.listdir(folder))
    except FileNotFoundError:
        return
    except OSError as error:
        raise OutputError(f"{folder}: {error.strerror}") from error
    existing = [folder / name for name in names if name in existing_names]
    if not existing:
        return
    refuse_if_sources(existing, sources)
    if not overwrite:
        more = f" (and {len(existing) - 1:,} more results)" if len(existing) > 1 else ""
        raise OutputExistsError(f"{existing[0]}: {EXISTS}{more}")


def write_file(
    path: str | os.PathLike[str],
    save: Callable[[BinaryIO], Any],
    *,
    overwrite: bool = False,
    sources: Iterable[str | os.PathLike[str]] = (),
    durable: bool = False,
) -> None:
    """Write a file that gets its name only when it is complete.

    Args:
        path: file to write. A link of this name is replaced, not its target.
        save: function that is called with a new binary file in the same folder.
        overwrite: whether an existing file may be replaced. The new content is on the disk (fsync)
            before the old file is replaced.
        sources: local files that are read; none of them is ever replaced.
        durable: whether a new file, too, is on the disk when this function returns.

    Raises:
        OutputExistsError: If the file exists and `overwrite` is false.
        OutputError: If the file cannot be written. An existing file is left unchanged.
    """
    output = Path(path)
    check_output(output, overwrite=overwrite, sources=sources)
    new = output.with_name(f".{output.name[:50]}-{token_hex(4)}.part")
    durable = durable or os.path.lexists(output)
    try:
        with _new_file(new) as file:
            save(file)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        publish(new, output, overwrite=overwrite)
        if durable:
            sync_folder(output.parent)
    except OSError as error:
        if isinstance(error, SwatheError):  # also of what is read meanwhile
            raise
        # The name of the temporary file would mean nothing to users.
        raise OutputError(f"{output}: cannot write: {error.strerror or error}") from error


@contextmanager
def _new_file(path: Path) -> Iterator[BinaryIO]:
    """Open a new file, and remove it if the caller's block fails."""
    file = path.open("xb")
    try:
        with file:
            yield file
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def publish(new: Path, path: Path, *, overwrite: bool) -> None:
    """Rename a complete file to its final name; remove it if that fails.

    Raises:
        OutputExistsError: If a file of this name exists and `overwrite` is false.
        OSError: If the file cannot be renamed.
    """
    try:
        if overwrite or not _link(new, path):
            os.replace(new, path)
    except FileExistsError as error:
        raise OutputExistsError(f"{path}: {EXISTS}") from error
    finally:
        new.unlink(missing_ok=True)


def _link(new: Path, path: Path) -> bool:
    """Link a file under a second name, which must be free; return false without hard links.

    Raises:
        FileExistsError: If the name exists.
    """
    try:
        os.link(new, path)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from error
        return False
    return True


def unfinished_results(folder: Path) -> Iterator[Path]:
    """Return the files in a folder that are named as results still being written."""
    return folder.glob(".swathe-[0-9]*-[0-9]*.part")


def open_part_file(path: Path, *, append: bool = False) -> BinaryIO:
    """Open the unfinished file of an output; an earlier run may have left one.

    A link of this name is removed, never followed: it may point to a file of someone else.

    Args:
        path: hidden name of the unfinished file.
        append: whether to append to existing content.

    Raises:
        OSError: If the file cannot be opened.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_APPEND
    with suppress(FileNotFoundError):
        status = path.lstat()
        if not append or not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
            path.unlink()
    return os.fdopen(os.open(path, flags, 0o666), "ab")


def remove_part_files(folder: Path) -> None:
    """Remove the unfinished results that a killed process left in a folder.

    Raises:
        OutputError: If a file cannot be removed.
    """
    for path in unfinished_results(folder):
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise OutputError(f"{path}: cannot remove it: {error.strerror}") from error


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk (fsync)."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def sole_writer(path: Path) -> Iterator[None]:
    """Lock the output that this manifest belongs to, so that only one process writes it.

    The lock belongs to the operating system, so a killed process releases it.

    Raises:
        OutputError: If another process writes the output, or if the lock's file is not empty. Locks
            are empty and are removed, so a file with content is not a lock.
    """
    lock = path.with_name(f".{path.name}.lock")
    handle = _open_lock(lock, path)
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)
        os.close(handle)


def _open_lock(lock: Path, path: Path) -> int:
    """Open and lock the lock's file, and check that it still has its name."""
    while True:
        try:
            handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
        except OSError as error:
            raise OutputError(f"{path}: cannot write: {error.strerror}") from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            status = os.fstat(handle)
            # The previous holder may have removed it meanwhile.
            if _identity(status) == _identity(os.stat(lock)):
                if status.st_size:
                    raise OutputError(
                        f"{path}: cannot write: {lock.name} beside it: expected an empty lock, "
                        f"found a file of {status.st_size:,} bytes; rename it"
                    )
                return handle
        except OutputError:
            os.close(handle)
            raise
        except BlockingIOError as error:
            os.close(handle)
            raise OutputError(
                f"{path}: another process is writing this output; wait for it, or give another name"
            ) from error
        except FileNotFoundError:
            pass
        except OSError as error:
            os.close(handle)
            raise OutputError(f"{path}: cannot lock: {error.strerror}") from error
        os.close(handle)


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino
