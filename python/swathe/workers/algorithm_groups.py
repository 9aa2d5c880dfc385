"""Groups of granules on which an algorithm runs: granules are made local, then it reads them.

A granule in a folder of this machine is read where it is: its file in the scratch folder is a link.
One in another store is copied.
"""

from __future__ import annotations

import logging
import os
import shutil
import time
import zipfile
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, NamedTuple

from swathe import _swathe, trace
from swathe.algorithms.group_run import BoxSettings, plain_suffix, run_group
from swathe.algorithms.groups import Granule, GranuleGroup
from swathe.algorithms.local_granules import metadata_of
from swathe.catalog.records.algorithms import MOST_LOG, GroupRunRecord, short_log
from swathe.core.errors import (
    AlgorithmError,
    ChangedError,
    LimitError,
    NotFoundError,
    SandboxBusyError,
    SandboxError,
    SandboxUnavailableError,
    SourceError,
    SwatheError,
)
from swathe.core.host import this_host
from swathe.core.row_record import RowGranule, fault_of
from swathe.jobs.archives import input_of
from swathe.stores.registry import known_stores
from swathe.workers.granule_rows import another_version, check_version
from swathe.workers.input_files import PART, InputFiles, copy_source
from swathe.workers.pool import pauses
from swathe.workers.result_rows import end_row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from swathe.algorithms.group_run import GroupRun
    from swathe.core.row_record import RowRecord
    from swathe.core.row_table import RowTable
    from swathe.workers.batch import Batch

log = logging.getLogger(__name__)

BUSY_S = 0.2
"""First pause while all user ids are in use, in seconds."""
LOOK_S = 0.1
"""Interval at which a waiting group checks whether its batch is stopped, in seconds."""
OUTPUTS = "out-"
"""Prefix of the folder, in that of the batch, for the outputs of the group at work."""
TRIES = 3
"""Attempts to run a group if the sandbox itself fails."""
ZIP_TIME = (1980, 1, 1, 0, 0, 0)
"""Time of all members of an archive of outputs: the same outputs are the same archive."""


def fetch_granules(
    rows: RowTable, aside: Path, should_stop: Callable[[], bool]
) -> Iterator[tuple[RowRecord, Path | None, int]]:
    """Make granules local, one at a time; yield their rows as they end, with file and bytes read.

    A granule that cannot be read has no file.

    Args:
        rows: rows of granules.
        aside: folder of the batch.
        should_stop: function that returns whether to stop.

    Raises:
        OSError: If a copy cannot be written.
    """
    for row in rows:
        if should_stop():
            return
        new = aside / f"{row.number}.npy"
        try:
            version, read_bytes = _fetch(row.source, new, should_stop, row)
        except LimitError:
            return
        except SwatheError as error:
            yield end_row(row, *fault_of(error)), None, 0
            continue
        done = row._replace(status="ok", reason="", version=version, bytes=0, sha256="")
        yield done, new, read_bytes


def _fetch(
    file: str, new: Path, should_stop: Callable[[], bool], row: RowRecord | None = None
) -> tuple[str, int]:
    """Make one granule local; return its version, and the bytes that were read.

    Raises:
        SwatheError: If it cannot be read, or has another version than its row asks for.
        LimitError: If it was stopped.
    """
    stores = known_stores() or _swathe.Stores("[]")
    source = stores.open(file)
    if row is not None:
        check_version(row, source.version)
    path = stores.local_path(file)
    if path is not None:
        if not path.is_file():
            raise SourceError(f"{file}: expected a file, found something else")
        new.symlink_to(path)
        return source.version, 0
    copy_source(source, new, should_stop)
    return source.version, source.size


class GroupResult(NamedTuple):
    """Row of a group that has ended.

    Attributes:
        row: the row.
        archive: its outputs; `None` if it failed.
        record: what became of the run; `None` if there was none.
    """

    row: RowRecord
    archive: Path | None
    record: GroupRunRecord | None


@dataclass
class GroupRunner:
    """Runs the algorithm of a batch, group by group.

    Attributes:
        batch: batch of the groups.
        box: the sandbox of this machine.
        folder: local folder of the job, with its granules.
        aside: folder of the batch.
        should_stop: function that returns whether to stop.
    """

    batch: Batch
    box: BoxSettings | None
    folder: Path
    aside: Path
    should_stop: Callable[[], bool]

    def __post_init__(self) -> None:
        """Get the files that are the same for all groups.

        Raises:
            AlgorithmError: If the algorithm lacks a library or its environment.
            SandboxUnavailableError: If this machine runs no programs of users.
        """
        own = self.batch.options.own
        if self.box is None:
            raise SandboxUnavailableError(f"{this_host()} runs no programs of users")
        self._box = self.box
        self._files = InputFiles(self.aside, self.should_stop)
        self._granules = InputFiles(self.aside, self.should_stop)
        if self.batch.program is None:
            raise AlgorithmError(self.batch.program_fault)
        try:
            files = {name: self._local(name, file) for name, file in own["files"].items()}
        except BaseException:
            self.close()
            raise
        self._call = replace(self.batch.program, files=files)

    def close(self) -> None:
        """Close the files that are the same for all groups."""
        self._files.close()

    def _local(self, name: str, file: str) -> Path:
        """Return a file that is the same for all groups."""
        stores = known_stores() or _swathe.Stores("[]")
        path = stores.local_path(file)
        if path is not None:
            return self._files.add(stores.open(file), path, f"link-{name}{plain_suffix(file)}")
        new = self.aside / f"file-{name}{plain_suffix(file)}"
        if not new.exists():
            _fetch(file, new, self.should_stop)
        return new

    def run(self, row: RowRecord, inputs: RowTable) -> GroupResult:
        """Run the algorithm on a group.

        Args:
            row: row of the result.
            inputs: rows of its granules.

        Raises:
            LimitError: If it was stopped.
            SandboxUnavailableError: If this machine cannot confine programs.
        """
        collect = Path(mkdtemp(prefix=OUTPUTS, dir=self.aside))
        try:
            group = self._group(row, inputs)
            with trace.event(
                "ALGORITHM", algorithm=self._call.algorithm.label, group=row.id
            ) as event:
                run = self._run(group, collect)
                event.add(bytes=run.input_bytes)
                if run.problem:
                    event.add(result="error", reason=run.problem)
            record = self._record(row, run)
            if run.problem:
                return GroupResult(end_row(row, "error", run.problem), None, record)
            new = self.aside / f"{row.number}.zip"
            write_archive(new, run.outputs.values())
            return GroupResult(row, new, record)
        except (LimitError, SandboxUnavailableError):
            raise
        except SwatheError as error:
            return GroupResult(end_row(row, *fault_of(error)), None, None)
        finally:
            self._granules.close()
            shutil.rmtree(collect, ignore_errors=True)

    def _run(self, group: GranuleGroup, collect: Path) -> GroupRun:
        """Run the algorithm; again if the sandbox failed, which is no fault of the algorithm.

        While all user ids are in use, by what others try or by processes of before, it waits.
        """
        failures = 0
        for pause_s in pauses(BUSY_S):
            try:
                return run_group(self._call, group, collect, self._box, self.should_stop)
            except SandboxUnavailableError:
                raise
            except SandboxBusyError as error:
                log.warning("%s: group %s waits: %s", self.batch.job, group.name, error)
                self._wait(pause_s)
            except SandboxError as error:
                failures += 1
                if failures == TRIES:
                    raise
                log.warning("%s: group %s: %s", self.batch.job, group.name, error)
        raise AssertionError("pauses do not end")

    def _wait(self, seconds: float) -> None:
        """Wait for some time.

        Raises:
            LimitError: If the batch is stopped.
        """
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.should_stop():
                raise LimitError("stopped")
            time.sleep(LOOK_S)

    def _group(self, row: RowRecord, inputs: RowTable) -> GranuleGroup:
        """Return the granules of a group.

        Raises:
            ChangedError: If a granule has changed since it was looked at.
            SwatheError: If a granule cannot be read.
        """
        of_input = self._call.algorithm.granules[1]
        roles: dict[str, list[Granule]] = {"before": [], "group": [], "after": []}
        for each in sorted(inputs, key=lambda each: each.number):
            if each.status != "ok":
                raise SourceError(f"{each.id}: {each.reason}")
            path = self._path(each)
            about = each.granule or RowGranule()
            start, end = (
                datetime.fromisoformat(text) if text else None for text in (about.start, about.end)
            )
            if start is None or of_input.arrays:
                first, last, _ = metadata_of(path, of_input)
                start, end = start or first, end or last
            roles[about.role].append(Granule(each.id, str(path), start, end))
        return GranuleGroup(
            row.id, tuple(roles["group"]), tuple(roles["before"]), tuple(roles["after"])
        )

    def _path(self, row: RowRecord) -> Path:
        """Return the file of a granule, under a name with the suffix of its own."""
        local = input_of(self.folder, row.number)
        if not local.is_symlink():
            link = self.aside / f"{row.number}{plain_suffix(row.source)}"
            if not link.exists():
                os.link(local, link)
            return link
        stores = known_stores() or _swathe.Stores("[]")
        source = stores.open(row.source)
        if source.version != row.version:
            text = another_version(row.version, source.version)
            raise ChangedError(f"{row.id}: {text}; submit a new job")
        path = stores.local_path(row.source)
        if path is None:
            raise NotFoundError(f"{row.id}: expected a local file, found none")
        return self._granules.add(source, path, f"link-{row.number}{plain_suffix(row.source)}")

    def _record(self, row: RowRecord, run: GroupRun) -> GroupRunRecord:
        return GroupRunRecord(
            row=row.number,
            group=row.id,
            algorithm=self._call.algorithm.label,
            problem=run.problem,
            log=short_log(run.log, MOST_LOG),
            input_bytes=run.input_bytes,
            output_bytes=run.output_bytes,
            wall_s=run.wall_s,
            cpu_s=run.cpu_s,
            memory_bytes=run.memory_bytes,
            ended_at=datetime.now(UTC),
        )


def write_archive(path: Path, outputs: Iterable[Path]) -> None:
    """Write outputs into a zip, uncompressed, so that each can be read in place."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for each in outputs:
            member = zipfile.ZipInfo(each.name, ZIP_TIME)
            member.external_attr = 0o644 << 16
            with each.open("rb") as source, archive.open(member, "w", force_zip64=True) as into:
                shutil.copyfileobj(source, into, PART)
