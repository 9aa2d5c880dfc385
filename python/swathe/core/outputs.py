"""The one place that decides whether a file may be written, and how it takes its place.

No file that is read is ever replaced, and no file that exists is replaced unless that is asked
for. A file is seen under its name when it is whole. The engine has the same rules for the
results of batches, in `crates/engine/src/output`.
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

from swathe.core.errors import OutputError, OutputExistsError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
"""What file systems say that have no hard links."""
HEAD_BYTES = 1 << 16
"""Of a trace; a line is shorter."""
EXISTS = "exists already; give --overwrite to replace it"


def check_output(
    path: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    sources: Iterable[str | os.PathLike[str]] = (),
) -> None:
    """Check whether a file may be written, before anything is read or measured for it.

    Args:
        path: the file.
        overwrite: whether a file of this name may be replaced.
        sources: local files that are read; none of them is ever replaced.

    Raises:
        OutputExistsError: if there is a file of this name, and `overwrite` is false.
        OutputError: if the name is that of a source, also through links, or of a folder or
            device, or if its folder does not exist.
    """
    where = Path(path)
    try:
        there: os.stat_result | None = where.stat()
    except OSError:
        there = None
    if there is None and not where.is_symlink():
        check_folder(where.parent, where)
        return
    if there is not None:
        refuse_sources({_identity(there): where}, sources)
        if not stat.S_ISREG(there.st_mode):
            kind = "a folder" if stat.S_ISDIR(there.st_mode) else "no regular file"
            raise OutputError(f"{where}: cannot write: it is {kind}")
    if not overwrite:
        raise OutputExistsError(f"{where}: {EXISTS}")


def check_trace(path: Path, *, rotates: bool = False) -> None:
    """Check whether events may be written to a file: it is appended to, or replaced.

    Args:
        path: the file.
        rotates: whether it becomes `FILE.1`, and what had that name `FILE.2`, when it is large.

    Raises:
        OutputError: if there is a file that holds anything but events.
    """
    _check_events(path)
    if rotates:
        for old in sorted(path.parent.glob(f"{escape(path.name)}.*")):
            if old.name.rpartition(".")[2].isdecimal():
                _check_events(old)


def _check_events(path: Path) -> None:
    try:
        if not path.is_file():
            return
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError:
        return  # whoever opens it to write says what is wrong
    # A header of FITS may hold the name of an event, but no FITS file begins with a date.
    if head and not (head.lstrip().startswith(b"DATE=") and b"NL.EVNT=" in head):
        raise OutputError(f"{path}: exists and is no trace; give another name")


def check_folder(folder: Path, output: Path) -> None:
    """Check whether the folder of an output is there.

    Raises:
        OutputError: if it is not, or is a file.
    """
    if folder.is_dir():
        return
    what = "exists and is not a folder" if folder.exists() else "does not exist"
    raise OutputError(f"{output}: cannot write: the folder {folder} {what}")


def make_folder(folder: str | os.PathLike[str]) -> Path:
    """Make a folder for results, with those above it.

    Raises:
        OutputError: if it cannot be made, or a file has its name.
    """
    path = Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise OutputError(f"{path}: exists and is not a folder") from error
    except OSError as error:
        raise OutputError(f"{path}: cannot make the folder: {error.strerror}") from error
    return path


def refuse_sources(
    outputs: dict[tuple[int, int], Path], sources: Iterable[str | os.PathLike[str]]
) -> None:
    """Refuse outputs that are sources, by device and inode.

    Args:
        outputs: files that would be replaced, by device and inode.
        sources: local files that are read. Those that are not there are left out.

    Raises:
        OutputError: naming the output and the source.
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
    """Give files by device and inode. Those that are not there are left out."""
    found = {}
    for file in files:
        with suppress(OSError, ValueError):
            found[_identity(file.stat())] = file
    return found


def refuse_if_sources(
    paths: Iterable[Path], sources: Callable[[], Iterable[str | os.PathLike[str]]]
) -> None:
    """Refuse files that are sources: those that would be replaced, or are removed on the way.

    Args:
        paths: files that are there.
        sources: gives local files that are read; called only if there is such a file.

    Raises:
        OutputError: naming the file and the source.
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
        folder: need not exist.
        names: many; they are compared with a list of the folder.
        overwrite: whether files of these names may be replaced.
        sources: gives local files that are read; called only if a name exists.

    Raises:
        OutputExistsError: if one is there, and `overwrite` is false.
        OutputError: if one is a source.
    """
    try:
        there = set(os.listdir(folder))
    except FileNotFoundError:
        return
    except OSError as error:
        raise OutputError(f"{folder}: {error.strerror}") from error
    taken = [folder / name for name in names if name in there]
    if not taken:
        return
    refuse_if_sources(taken, sources)
    if not overwrite:
        more = f" (and {len(taken) - 1:,} more results)" if len(taken) > 1 else ""
        raise OutputExistsError(f"{taken[0]}: {EXISTS}{more}")


def write_file(
    path: str | os.PathLike[str],
    save: Callable[[BinaryIO], Any],
    *,
    overwrite: bool = False,
    sources: Iterable[str | os.PathLike[str]] = (),
    durable: bool = False,
) -> None:
    """Write a file that is seen under its name when it is whole.

    Args:
        path: the file. A link of this name is replaced, not what it points to.
        save: is called with a new file in the same folder, open for writing.
        overwrite: whether a file of this name may be replaced. What replaces one is on the disk
            before the old one goes.
        sources: local files that are read; none of them is ever replaced.
        durable: whether a new file, too, is on the disk when this returns.

    Raises:
        OutputExistsError: if there is a file of this name, and `overwrite` is false.
        OutputError: if it cannot be written. What was there stays.
    """
    where = Path(path)
    check_output(where, overwrite=overwrite, sources=sources)
    new = where.with_name(f".{where.name[:50]}-{token_hex(4)}.part")
    durable = durable or os.path.lexists(where)
    try:
        with _new_file(new) as file:
            save(file)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        publish(new, where, overwrite=overwrite)
        if durable:
            sync_folder(where.parent)
    except OSError as error:
        if isinstance(error, OutputError):
            raise
        # The name of the temporary file would say nothing to users.
        raise OutputError(f"{where}: cannot write: {error.strerror or error}") from error


@contextmanager
def _new_file(path: Path) -> Iterator[BinaryIO]:
    """Open a new file; remove it if what follows fails."""
    file = path.open("xb")
    try:
        with file:
            yield file
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def publish(new: Path, path: Path, *, overwrite: bool) -> None:
    """Give a whole file its name; if that cannot be, it is removed.

    Raises:
        OutputExistsError: if there is a file of this name, and `overwrite` is false.
        OSError: if it cannot be renamed.
    """
    try:
        if overwrite or not _link(new, path):
            os.replace(new, path)
    except FileExistsError as error:
        raise OutputExistsError(f"{path}: {EXISTS}") from error
    finally:
        new.unlink(missing_ok=True)


def _link(new: Path, path: Path) -> bool:
    """Give a file a second name that must be free; false if the file system has no links.

    Raises:
        FileExistsError: if the name is taken.
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
    """Give the files of a folder that have the names of results while they are written."""
    return folder.glob(".swathe-[0-9]*-[0-9]*.part")


def open_unfinished(path: Path, *, append: bool = False) -> BinaryIO:
    """Open the unfinished file of an output, which a run before may have left.

    A link of this name is removed, never followed: it may lead to a file that is not ours.

    Args:
        path: its hidden name.
        append: whether to go on with what is there.

    Raises:
        OSError: if it cannot be opened.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_APPEND
    with suppress(FileNotFoundError):
        there = path.lstat()
        if not append or not stat.S_ISREG(there.st_mode) or there.st_nlink > 1:
            path.unlink()
    return os.fdopen(os.open(path, flags, 0o666), "ab")


def remove_unfinished(folder: Path) -> None:
    """Remove results that a process was writing into a folder when it was killed.

    Raises:
        OutputError: if they cannot be removed.
    """
    for path in unfinished_results(folder):
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise OutputError(f"{path}: cannot remove it: {error.strerror}") from error


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def sole_writer(path: Path) -> Iterator[None]:
    """Let one process at a time write the output of which this is the manifest.

    The lock is of the operating system, so that of a process that was killed is free.

    Raises:
        OutputError: if another process writes it, or if there is a file of the name of the lock
            that holds something: locks are empty, and are removed.
    """
    lock = path.with_name(f".{path.name}.lock")
    handle = _locked(lock, path)
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)
        os.close(handle)


def _locked(lock: Path, path: Path) -> int:
    """Open and lock a file that has the name of the lock when it is locked."""
    while True:
        try:
            handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
        except OSError as error:
            raise OutputError(f"{path}: cannot write: {error.strerror}") from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            found = os.fstat(handle)
            # Whoever had it may have removed it meanwhile.
            if _identity(found) == _identity(os.stat(lock)):
                if found.st_size:
                    raise OutputError(
                        f"{path}: cannot write: {lock.name} beside it: expected an empty lock, "
                        f"found a file of {found.st_size:,} bytes; rename it"
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


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino
