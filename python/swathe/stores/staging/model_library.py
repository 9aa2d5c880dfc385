"""A model of a tape library, for demonstrations and tests.

A folder has the objects on tape (`tape/`), those on disk (`disk/`), a program (`library`) that
speaks the protocol of staging by command, the state (`library.sqlite`), and the names of all
objects (`objects.txt`). Nothing runs between
calls: when a request comes, it is given to drives, and so it is known when each object will have
been read. Every call moves what has been read by then. Objects of one medium that follow each other
are read without another mount.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Literal, TypeAlias

from swathe import _swathe
from swathe.core.errors import OutputExistsError, SwatheError

State: TypeAlias = Literal["queued", "active", "disk"]
MOUNT_S = (20.0, 40.0)
"""Seconds to mount a medium, drawn evenly; times the scale of the model."""
POSITION_S, BYTES_PER_S = 0.5, 300e6
"""Seconds to move by one object, and rate of a drive; times and over the scale."""
BUSY_S = 30.0
TABLES = """
CREATE TABLE settings (name TEXT PRIMARY KEY, value REAL NOT NULL);
CREATE TABLE objects (
    path TEXT PRIMARY KEY, bytes INTEGER NOT NULL, medium TEXT NOT NULL, position INTEGER NOT NULL
);
CREATE TABLE drives (number INTEGER PRIMARY KEY, free_s REAL, medium TEXT, head INTEGER);
CREATE TABLE tasks (
    request TEXT NOT NULL, path TEXT NOT NULL, start_s REAL NOT NULL, end_s REAL NOT NULL,
    until_s REAL NOT NULL, PRIMARY KEY (request, path)
);
"""
PROGRAM = """#!{python}
import sys
sys.path[:0] = {paths}
from swathe.stores.staging.model_library import main
main({folder!r})
"""


class ModelLibrary:
    """A model of a tape library in a folder."""

    def __init__(self, folder: Path) -> None:
        """Use the library of a folder."""
        self.folder = folder

    @property
    def program(self) -> Path:
        """Return the program, for the option staging_command."""
        return self.folder / "library"

    @property
    def disk(self) -> Path:
        """Return the folder of objects on disk, for the URL of the store."""
        return self.folder / "disk"

    @contextmanager
    def _state(self) -> Iterator[sqlite3.Connection]:
        """Yield the state, locked; it is written at the end."""
        path = self.folder / "library.sqlite"
        with closing(sqlite3.connect(path, timeout=BUSY_S, isolation_level=None)) as state:
            state.execute("BEGIN IMMEDIATE")
            yield state
            state.execute("COMMIT")

    def begin(self, media: int, drives: int, scale: float) -> None:
        """Make the state of a library whose objects are in `tape/`.

        Args:
            media: number of media; the objects are spread over them in the order of their names.
            drives: number of drives.
            scale: factor of all times.
        """
        objects = sorted(path for path in (self.folder / "tape").rglob("*") if path.is_file())
        self.disk.mkdir(exist_ok=True)
        with closing(sqlite3.connect(self.folder / "library.sqlite")) as state, state:
            state.executescript(TABLES)
            state.execute("INSERT INTO settings VALUES ('scale', ?)", (scale,))
            for number, path in enumerate(objects):
                name = path.relative_to(self.folder / "tape").as_posix()
                row = (name, path.stat().st_size, f"T{number % media:05}", number // media)
                state.execute("INSERT INTO objects VALUES (?, ?, ?, ?)", row)
            for number in range(drives):
                state.execute("INSERT INTO drives VALUES (?, 0, NULL, 0)", (number,))
        paths = [os.path.dirname(os.path.dirname(os.path.abspath(_swathe.__file__)))]
        text = PROGRAM.format(python=sys.executable, paths=paths, folder=str(self.folder))
        self.program.write_text(text)
        self.program.chmod(0o755)

    def locate(self, paths: Sequence[str]) -> list[dict[str, Any]]:
        """Return where objects are."""
        lines: list[dict[str, Any]] = []
        with self._state() as state:
            self._move(state)
            for path in paths:
                row, file = _object(state, path), self.disk / path
                if row is None and file.is_file():
                    # Written by others: it is not on a tape yet.
                    size = file.stat().st_size
                    lines.append({"path": path, "locality": "disk", "bytes": size})
                    continue
                if row is None:
                    lines.append({"path": path, "locality": "lost", "reason": "no such object"})
                    continue
                locality = "disk" if (self.disk / path).exists() else "nearline"
                size, medium, position = row
                place = {"bytes": size, "medium": medium, "position": position}
                lines.append({"path": path, "locality": locality, **place})
        return lines

    def stage(self, lines: Sequence[dict[str, Any]]) -> str:
        """Give objects to drives in this order; return the name of the request."""
        now_s = time.time()
        with self._state() as state:
            self._move(state)
            request = f"{now_s:.6f}-{random.getrandbits(24):06x}"
            (scale,) = state.execute("SELECT value FROM settings WHERE name = 'scale'").fetchone()
            for line in lines:
                row, is_there = _object(state, line["path"]), (self.disk / line["path"]).exists()
                if row is None and not is_there:
                    raise SwatheError(f"{line['path']}: there is no such object")
                start_s = end_s = now_s
                if row is not None and not is_there:
                    start_s, end_s = _read(state, row, now_s, scale)
                task = (request, line["path"], start_s, end_s, end_s + line["lifetime_s"])
                state.execute("INSERT OR REPLACE INTO tasks VALUES (?, ?, ?, ?, ?)", task)
        return request

    def poll(self, request: str, paths: Sequence[str]) -> list[dict[str, Any]]:
        """Return the states of objects of a request."""
        now_s, lines = time.time(), []
        with self._state() as state:
            self._move(state)
            for path in paths:
                task = state.execute(
                    "SELECT start_s, end_s FROM tasks WHERE request = ? AND path = ?",
                    (request, path),
                ).fetchone()
                if task is None:
                    lines.append({"path": path, "state": "failed", "reason": "not of the request"})
                    continue
                line: dict[str, Any] = {"path": path, "state": _state_at(now_s, *task)}
                if line["state"] == "queued":
                    (line["place"],) = state.execute(
                        "SELECT count(*) FROM tasks WHERE end_s > ? AND start_s < ?",
                        (now_s, task[0]),
                    ).fetchone()
                lines.append(line)
        return lines

    def release(self, request: str, paths: Sequence[str]) -> None:
        """Forget tasks; objects leave the disk when they are of no other."""
        with self._state() as state:
            for path in paths:
                task = (request, path)
                state.execute("DELETE FROM tasks WHERE request = ? AND path = ?", task)
            self._move(state)

    def evict(self, paths: Sequence[str]) -> None:
        """Remove objects from disk."""
        with self._state() as state:
            for path in paths:
                state.execute("DELETE FROM tasks WHERE path = ?", (path,))
            self._move(state)

    def _move(self, state: sqlite3.Connection) -> None:
        """Bring to disk what has been read, and remove what nobody has asked to keep."""
        now_s = time.time()
        state.execute("DELETE FROM tasks WHERE until_s < ?", (now_s,))
        for (path,) in state.execute("SELECT DISTINCT path FROM tasks WHERE end_s <= ?", (now_s,)):
            target = self.disk / path
            if not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                part = target.with_name(f".{target.name}.part")
                shutil.copy2(self.folder / "tape" / path, part)  # with its time, as archives do
                part.rename(target)
        query = "SELECT path FROM objects WHERE path NOT IN (SELECT path FROM tasks)"
        for (path,) in state.execute(query):
            (self.disk / path).unlink(missing_ok=True)


def _object(state: sqlite3.Connection, path: str) -> tuple[int, str, int] | None:
    query = "SELECT bytes, medium, position FROM objects WHERE path = ?"
    row: tuple[int, str, int] | None = state.execute(query, (path,)).fetchone()
    return row


def _read(
    state: sqlite3.Connection, row: tuple[int, str, int], now_s: float, scale: float
) -> tuple[float, float]:
    """Give an object to a drive; return when it begins and ends to read it.

    The drive whose last object is on the same medium has it, else the one that is free first.
    """
    size, medium, position = row
    number, free_s, last_medium, head = state.execute(
        "SELECT number, free_s, medium, head FROM drives "
        "ORDER BY (medium IS NOT ?), free_s, number LIMIT 1",
        (medium,),
    ).fetchone()
    start_s = max(now_s, free_s)
    mount_s = 0.0
    if last_medium != medium:
        mount_s, head = random.uniform(*MOUNT_S), 0
    seconds = mount_s + abs(position - head) * POSITION_S + size / BYTES_PER_S
    end_s = start_s + scale * seconds
    state.execute(
        "UPDATE drives SET free_s = ?, medium = ?, head = ? WHERE number = ?",
        (end_s, medium, position + 1, number),
    )
    return start_s, end_s


def _state_at(now_s: float, start_s: float, end_s: float) -> State:
    if now_s >= end_s:
        return "disk"
    return "active" if now_s >= start_s else "queued"


def sample_library(
    folder: str | os.PathLike[str],
    *,
    objects: int = 12,
    media: int = 3,
    drives: int = 2,
    scale: float = 0.05,
    seed: int = 1,
) -> ModelLibrary:
    """Make a model of a tape library with small images of FITS.

    Args:
        folder: a new folder.
        objects: number of images, 520 kB each.
        media: number of media.
        drives: number of drives.
        scale: factor of all times: with 1 a mount takes 20 to 40 s.
        seed: seed of the images.

    Raises:
        OutputExistsError: If the folder exists and is not empty.
    """
    import numpy as np
    from astropy.io import fits

    library = ModelLibrary(Path(folder).absolute())
    if library.folder.exists() and any(library.folder.iterdir()):
        raise OutputExistsError(f"{library.folder}: expected a new folder, found one with files")
    tape = library.folder / "tape"
    tape.mkdir(parents=True)
    for number in range(1, objects + 1):
        pixels = np.random.default_rng([seed, number]).normal(1000, 10, (512, 512))
        image = fits.PrimaryHDU(pixels.round().astype(np.int16))
        image.writeto(tape / f"frame-{number:04}.fits")
    names = "".join(f"{path.name}\n" for path in sorted(tape.iterdir()))
    (library.folder / "objects.txt").write_text(names)
    library.begin(media, drives, scale)
    return library


def main(folder: str) -> None:
    """Answer one call of the protocol of staging by command: action as argument, JSON lines."""
    library, action = ModelLibrary(Path(folder)), sys.argv[1]
    lines = [json.loads(line) for line in sys.stdin]
    request = lines[0].get("request", "") if lines else ""
    paths = [line["path"] for line in lines if "path" in line]
    answer: list[dict[str, Any]] = []
    match action:
        case "locate":
            answer = library.locate(paths)
        case "stage":
            answer = [{"request": library.stage(lines)}]
        case "poll":
            answer = library.poll(request, paths)
        case "release":
            library.release(request, paths)
        case "evict":
            library.evict(paths)
        case _:
            sys.exit(f"expected locate, stage, poll, release or evict, found {action[:40]!r}")
    sys.stdout.writelines(f"{json.dumps(line)}\n" for line in answer)
