"""Jobs that run an algorithm: each group of granules is one row of results."""

from __future__ import annotations

import io
import os
import queue
import re
import shutil
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from astropy.io import fits

from swathe import _swathe, sandbox
from swathe.algorithms.group_run import BoxSettings, GroupRun, run_group
from swathe.algorithms.groups import GranuleGroup
from swathe.catalog import Catalog
from swathe.catalog.jobs.leases import DEATHS
from swathe.catalog.records.jobs import ChunkResult, PastJob
from swathe.core.errors import (
    AlgorithmError,
    ChangedError,
    JobError,
    LimitError,
    NoSuchAlgorithmError,
    NoSuchResultError,
    OptionError,
    SandboxBusyError,
    TargetsError,
)
from swathe.core.host import this_host
from swathe.core.row_table import RowTable
from swathe.jobs import Job, Jobs, Limits, Options
from swathe.operations.operation import ObjectOption
from swathe.workers import LocalPool, Runner, algorithm_groups, execute, local
from swathe.workers.input_files import InputFiles
from tests.support.algorithms import LIBRARY_FILES, PACKAGE, tar_of
from tests.support.box import box, modes
from tests.support.job_runner import PATIENCE_S, contents_of, ended
from tests.support.servers import nginx

LINES = """\
# /// script
# [tool.swathe.algorithm]
# name = "lines"
# version = "1"
# inputs.texts = {{group = "{group}", count = "1..3", window = {{before = {before}}}}}
# inputs.title = {{file = "title.txt"}}
# outputs.table = {{media_type = "text/csv"}}
# outputs.more = {{media_type = "application/json", optional = true}}
# parameters.factor = {{type = "integer", default = 1, maximum = 9}}
# resources = {{wall = "20 s", output = "1 MB"}}
# ///
def run(texts, title, table, more, factor):
    print("texts:", *(text.id for text in texts))
    lines = [f"{{title.read_text()}},{{factor}}\\n"]
    for text in texts:
        content = open(text).read()
        if content == "bad":
            raise ValueError("a bad text")
        if content == "long":
            table.write_text("x" * 2_000_000)
            return
        lines.append(f"{{text.id}},{{text.role}},{{text.start}},{{content}}\\n")
    table.write_text("".join(lines))
"""


def source_of(group: str = "each", before: int = 0) -> bytes:
    text = LINES.format(group=group, before=before)
    return (text.replace('"1..3"', '"1"') if group == "each" else text).encode()


@pytest.fixture
def texts(tmp_path: Path) -> list[str]:
    """Granules, and the file that is the same for all groups."""
    (tmp_path / "title.txt").write_text("title")
    paths = [tmp_path / f"t{number}.txt" for number in range(4)]
    for number, path in enumerate(paths):
        path.write_text(f"text {number}")
    return list(map(str, paths))


def options_of(title: Path, **others: Any) -> Options:
    values = {"algorithm": "lines", "files": {"title": str(title)}, **others}
    return Options.from_mapping({"operation": "algorithm", **values})


@contextmanager
def working(jobs: Jobs, settings: BoxSettings | None = None) -> Iterator[None]:
    """A runner whose threads run programs in the sandbox."""
    runner = Runner(jobs, LocalPool(jobs.place, 2, box=settings or box()))
    runner.start()
    try:
        yield
    finally:
        runner.stop(PATIENCE_S)


def tables(jobs: Jobs, job: Job) -> dict[str, str]:
    """The output `table` of each group that succeeded."""
    outputs = {}
    for row in jobs.rows(job.id):
        if row.name:
            with zipfile.ZipFile(io.BytesIO(contents_of(jobs.result(job.id, row.name)))) as archive:
                assert archive.namelist() == ["table.csv"]
                outputs[row.id] = archive.read("table.csv").decode()
    return outputs


def test_each_group_is_a_row_with_its_log(
    jobs: Jobs, catalog: Catalog, texts: list[str], tmp_path: Path
) -> None:
    catalog.add_algorithm("lines", "1", source_of("day", before=1), "me")
    days = ["2005-05-02", "2005-05-01", "2005-05-01T12:00", "2005-05-03"]
    Path(texts[3]).write_text("bad")
    table = {"file": texts, "start": days}
    options = options_of(tmp_path / "title.txt", parameters={"factor": 2})
    with working(jobs):
        job = ended(jobs, jobs.submit(table, options, "me"))
    assert (job.phase, job.error) == ("COMPLETED", None)
    assert (job.unit, {name: count for name, count in job.totals.items() if count}) == (
        "group",
        {"ok": 2, "error": 1},
    )
    assert job.options.own["algorithm"] == "lines@1"
    utc = "00:00:00+00:00"
    assert tables(jobs, job) == {
        "2005-05-01": "title,2\n"
        f"t1.txt,group,2005-05-01 {utc},text 1\n"
        "t2.txt,group,2005-05-01 12:00:00+00:00,text 2\n",
        "2005-05-02": "title,2\n"
        "t2.txt,before,2005-05-01 12:00:00+00:00,text 2\n"
        f"t0.txt,group,2005-05-02 {utc},text 0\n",
    }
    *_, bad = jobs.rows(job.id)
    assert (bad.id, bad.status) == ("2005-05-03", "error") and "a bad text" in bad.reason
    log = jobs.group_run(job.id, "2005-05-03").log
    assert "texts: t0.txt t3.txt" in log and "Traceback" in log
    assert jobs.group_run(job.id, "2005-05-01").input_bytes == 12
    assert len(catalog.group_timings("lines@1")) == 2

    Path(texts[3]).write_text("good")
    with working(jobs):
        job = ended(jobs, jobs.resume(job.id))
    assert job.phase == "COMPLETED" and job.counts["error"] == job.totals["error"] == 1
    assert "expected version" in jobs.rows(job.id)[-1].reason


def test_a_group_that_does_not_fit_takes_no_granule_of_others(
    jobs: Jobs, catalog: Catalog, texts: list[str], tmp_path: Path
) -> None:
    catalog.add_algorithm("lines", "1", source_of("day"), "me")
    table = {"file": texts * 2, "group": list("aaaabbcc")}
    with working(jobs):
        job = ended(jobs, jobs.submit(table, options_of(tmp_path / "title.txt"), "me"))
    assert (job.totals["ok"], job.totals["error"], job.totals["waiting"]) == (2, 1, 0)
    with pytest.raises(NoSuchResultError, match="did not start: group a: expected 1 to 3"):
        jobs.group_run(job.id, "a")
    assert (job.counts["ok"], job.counts["error"], job.counts["waiting"]) == (6, 5, 0)


def test_a_removed_version_stays_that_of_its_jobs(
    jobs: Jobs, catalog: Catalog, texts: list[str], tmp_path: Path
) -> None:
    catalog.add_algorithm("lines", "1", source_of(), "me")
    job = jobs.submit({"file": texts, "id": list("abba")}, options_of(tmp_path / "title.txt"), "me")
    catalog.remove_algorithm("lines")
    Path(texts[1]).unlink()
    Path(texts[2]).write_text("long")
    with working(jobs):
        job = ended(jobs, job)
    assert list(tables(jobs, job)) == ["a", "a-2"]
    reasons = {row.id: row.reason for row in jobs.rows(job.id)[4:]}
    assert "not found" in reasons["b"] and "1000000" in reasons["b-2"]
    Path(texts[1]).write_text("late")
    with working(jobs):
        job = ended(jobs, jobs.resume(job.id))
    assert list(tables(jobs, job)) == ["a", "b", "a-2"]
    with pytest.raises(NoSuchAlgorithmError):
        jobs.submit({"file": texts}, options_of(tmp_path / "title.txt"), "me")


def test_orders_that_do_not_fit_are_refused(
    jobs: Jobs, catalog: Catalog, texts: list[str], tmp_path: Path
) -> None:
    catalog.add_algorithm("lines", "1", source_of("day"), "me")
    title = tmp_path / "title.txt"
    for options, error, words in (
        (options_of(title, algorithm=""), JobError, "NAME@VERSION"),
        (options_of(title, parameters={"factor": 10}), AlgorithmError, "factor"),
        (options_of(title, parameters={"factor": "2"}), AlgorithmError, "factor"),
        (options_of(title, files={}), AlgorithmError, "expected one for each input"),
        (options_of(title), AlgorithmError, "expected a time"),
    ):
        with pytest.raises(error, match=words):
            jobs.submit({"file": texts}, options, "me")
    with pytest.raises(TargetsError, match="a time as"):
        jobs.submit({"file": texts, "start": ["soon"] * 4}, options_of(title), "me")
    with pytest.raises(TargetsError, match="read whole"):
        jobs.submit({"file": texts, "x0": [1] * 4}, options_of(title), "me")
    with pytest.raises(JobError, match=r"no result was made.*absent\.txt"):
        with working(jobs):
            absent = options_of(tmp_path / "absent.txt")
            job = ended(jobs, jobs.submit({"file": texts, "group": list("abab")}, absent, "me"))
        raise JobError(str(job.error))
    with pytest.raises(JobError, match="no result was made"):
        with working(jobs):
            job = ended(
                jobs, jobs.submit({"file": texts, "group": ["a"] * 4}, options_of(title), "me")
            )
        raise JobError(str(job.error))


def test_without_a_sandbox_programs_are_refused(
    jobs: Jobs, catalog: Catalog, texts: list[str], tmp_path: Path
) -> None:
    catalog.add_algorithm("lines", "1", source_of(), "me")
    runner = Runner(jobs, LocalPool(jobs.place, 2))
    runner.start()
    try:
        job = ended(jobs, jobs.submit({"file": texts}, options_of(tmp_path / "title.txt"), "me"))
    finally:
        runner.stop(PATIENCE_S)
    assert job.phase == "ERROR" and "runs no programs of users" in str(job.error)


def test_objects_of_options_are_bounded() -> None:
    option = ObjectOption("parameters", "", "", (), {})
    assert option.read('{"a": 1, "b": "c"}') == {"a": 1, "b": "c"}
    for value in (
        "[" * 40_000,
        '{"a": NaN}',
        '{"a": 1e999}',
        '{"a": 1, "a": 2}',
        '{"a": {}}',
        {"a": "x" * 60_000},
        [1],
        {1: 2},
    ):
        with pytest.raises(OptionError, match="parameters: "):
            option.read(value)


def test_bubblewrap_gets_a_copy_of_an_input_that_its_user_cannot_reach(tmp_path: Path) -> None:
    """It looks up the path of a descriptor as that user, and failed in the middle of the start."""
    settings = box()
    if not any(each.mode == "bwrap" and each.holds for each in modes()):
        pytest.skip("bubblewrap does not hold on this machine")
    tmp_path.chmod(0o700)
    (tmp_path / "text").write_text("reached")
    request = sandbox.Request(
        ["/usr/bin/cat", "{in}/text"],
        inputs=[sandbox.Input("text", tmp_path / "text")],
        mode="bwrap",
        users=settings.users,
    )
    report = sandbox.run(request)
    assert (report.status, report.mode, report.stdout.text) == ("OK", "bwrap", "reached")


def test_granules_of_a_server_are_copied_and_charged(
    jobs: Jobs, catalog: Catalog, texts: list[str], tmp_path: Path
) -> None:
    catalog.add_algorithm("lines", "1", source_of(), "me")
    Path(texts[3]).write_text("bad")
    with nginx(tmp_path) as server:
        for path in tmp_path.glob("t*.txt"):
            shutil.copy(path, server.folder)
        catalog.add_store("web", server.url)
        catalog.add_store("here", str(tmp_path))
        table = {"file": ["web:t1.txt", "here:t2.txt", "web:t3.txt", "web:absent.txt"]}
        options = options_of(tmp_path / "title.txt", files={"title": "web:title.txt"})
        with (
            Jobs(catalog, tmp_path / "small", limits=Limits(result_bytes=9)) as small,
            pytest.raises(LimitError, match="would take at least 13 B"),
        ):
            small.submit(table, options, "me")
        here, web = jobs.estimate(table, options).reading
        assert here == "on this machine: 1 granule, 6 B: read where they are"
        assert re.fullmatch(
            r"web: 3 granules, 13 B: copied to where their group runs, about \S+ m?s, by assumed "
            "costs: swathe probe web measures them",
            web,
        ), web
        with working(jobs):
            job = ended(jobs, jobs.submit(table, options, "me"))
        assert {name: text.split()[-1] for name, text in tables(jobs, job).items()} == {
            "t1.txt": "1",
            "t2.txt": "2",
        }
        reasons = [row.reason for row in jobs.rows(job.id)[-2:]]
        assert "a bad text" in reasons[0] and "absent.txt" in reasons[1]
        copies = list((tmp_path / "results" / job.id).rglob("*.npy"))
        links = [path for path in copies if path.is_symlink()]
        assert (len(copies), len(links)) == (3, 1)
        charged = sum(path.lstat().st_size for path in copies)
        assert catalog.usage_of("me").bytes == job.bytes + charged
        assert job.actual is not None and job.actual["bytes"] == 6 + 3
        (server.folder / "absent.txt").write_text("late")
        with working(jobs):
            job = ended(jobs, jobs.resume(job.id))
    assert list(tables(jobs, job)) == ["t1.txt", "t2.txt", "absent.txt"]
    assert jobs.rows(job.id)[-2].status == "error"  # its copy is what was read
    jobs.delete(job.id)
    assert catalog.usage_of("me").bytes == 0


def test_programs_hold_neither_cuts_nor_other_users(
    jobs: Jobs,
    catalog: Catalog,
    texts: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun: queue.SimpleQueue[str] = queue.SimpleQueue()
    permits = threading.Semaphore(0)

    def slow(_call: Any, group: GranuleGroup, *_given: Any) -> GroupRun:
        begun.put(group.name)
        permits.acquire(timeout=PATIENCE_S)
        return GroupRun(group.name, "slow")

    monkeypatch.setattr(algorithm_groups, "run_group", slow)
    monkeypatch.setattr(local, "program_lanes", lambda _box: 2)
    catalog.add_algorithm("lines", "1", source_of(), "ann")
    options = options_of(tmp_path / "title.txt")
    image = str(tmp_path / "image.fits")
    fits.writeto(image, np.zeros((9, 9), ">i2"))
    cut = {"file": [image], "x0": [0], "y0": [0], "width": [5], "height": [5]}
    with working(jobs, BoxSettings()):
        jobs.submit({"file": texts, "id": ["a0", "a1", "a2", "a3"]}, options, "ann")
        assert {begun.get(timeout=PATIENCE_S) for _ in range(2)} == {"a0", "a1"}
        assert ended(jobs, jobs.submit(cut, Options(), "eve")).counts["ok"] == 1
        bob = jobs.submit({"file": texts[:1], "id": ["b0"]}, options, "bob")
        while jobs.job(bob.id).counts["ok"] < 1:  # its granule
            bob = jobs.wait(bob.id, bob.phase, 0.05)
        permits.release()
        assert begun.get(timeout=PATIENCE_S) == "b0"
        permits.release(9)
        assert ended(jobs, bob).phase == "ERROR"


def test_granules_that_are_copied_hold_no_cuts(
    jobs: Jobs,
    catalog: Catalog,
    texts: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun: queue.SimpleQueue[str] = queue.SimpleQueue()
    go = threading.Event()

    def slow(rows: RowTable, *_given: Any) -> Iterator[Any]:
        begun.put(rows.id[0])
        go.wait(PATIENCE_S)
        return iter(())

    monkeypatch.setattr(execute, "fetch_granules", slow)
    catalog.add_algorithm("lines", "1", source_of(), "ann")
    image = str(tmp_path / "image.fits")
    fits.writeto(image, np.zeros((9, 9), ">i2"))
    cut = {"file": [image], "x0": [0], "y0": [0], "width": [5], "height": [5]}
    with working(jobs, BoxSettings()):
        for name in "abc":
            table = {"file": texts[:1], "id": [name]}
            jobs.submit(table, options_of(tmp_path / "title.txt"), "ann")
        assert {begun.get(timeout=PATIENCE_S) for _ in range(2)} == {"a", "b"}
        assert ended(jobs, jobs.submit(cut, Options(), "ann")).counts["ok"] == 1
        for each in jobs.list("ann"):
            jobs.cancel(each.id)
        go.set()


def test_a_group_is_not_blamed_for_deaths_while_its_program_ran(
    jobs: Jobs, catalog: Catalog, texts: list[str], tmp_path: Path
) -> None:
    catalog.add_algorithm("lines", "1", source_of(), "me")
    job = jobs.submit({"file": texts[:1]}, options_of(tmp_path / "title.txt"), "me")
    dead, runner = f"{this_host()} 999999999 1 x", Runner(jobs)
    granules = catalog.take_chunk(dead, 60.0, lambda *_: 1)
    assert granules is not None
    catalog.finish_chunk(granules, ChunkResult(catalog.chunk_rows(granules).end("ok")))
    outputs = jobs.folder(job.id) / f"{execute.ASIDE}1-a" / f"{algorithm_groups.OUTPUTS}b"
    outputs.mkdir(parents=True)

    def die(times: int) -> None:
        for _ in range(times):
            assert catalog.take_chunk(dead, 60.0, lambda *_: 1) is not None
            assert runner._free_chunks() == 1

    die(DEATHS + 1)
    assert jobs.rows(job.id)[-1].status == "waiting"
    (outputs / "table.csv").write_text("1")
    die(DEATHS)
    group = jobs.rows(job.id)[-1]
    assert (group.status, group.reason) == ("error", "stopped the worker twice")


def test_a_group_waits_for_a_user_id(
    jobs: Jobs,
    catalog: Catalog,
    texts: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = iter(range(algorithm_groups.TRIES + 1))

    def busy(call: Any, group: GranuleGroup, *given: Any) -> GroupRun:
        if next(answers, None) is not None:
            raise SandboxBusyError("all 2 ids are in use")
        return GroupRun(group.name, "ran at last")

    monkeypatch.setattr(algorithm_groups, "run_group", busy)
    monkeypatch.setattr(algorithm_groups, "BUSY_S", 0.01)
    catalog.add_algorithm("lines", "1", source_of(), "me")
    options = options_of(tmp_path / "title.txt")
    with working(jobs, BoxSettings()):
        job = ended(jobs, jobs.submit({"file": texts[:1], "id": ["t"]}, options, "me"))
    assert jobs.rows(job.id)[-1].reason == "ran at last"


def test_a_preview_costs_what_its_group_costs(
    catalog: Catalog, texts: list[str], tmp_path: Path
) -> None:
    catalog.add_algorithm("lines", "1", source_of("day"), "me")
    with nginx(tmp_path) as server:
        for path in texts:
            shutil.copy(path, server.folder)
        catalog.add_store("web", server.url)
        days = ["2005-05-01", "2005-05-02", "2005-05-02", "2005-05-03"]
        table = {"file": [f"web:t{number}.txt" for number in range(4)], "start": days}
        options = options_of(tmp_path / "title.txt")
        with Jobs(catalog, tmp_path / "small", limits=Limits(result_bytes=10)) as small:
            with pytest.raises(LimitError, match="would take at least 24 B"):
                small.submit(table, options, "me")
            assert small.submit(table, options, "me", only_first=True).rows == 2


PRINT_TWO = b"""\
#include <stdio.h>
#include <stdlib.h>
#include <mylib.h>
int main(void) {
    FILE *table = fopen(getenv("SWATHE_OUTPUT_TABLE"), "w");
    fprintf(table, "%d,%s", two(), getenv("SWATHE_PARAMETER_FACTOR"));
    return fclose(table);
}
"""


def test_a_program_of_c_is_compiled_with_its_owners_library(
    jobs: Jobs, catalog: Catalog, texts: list[str]
) -> None:
    """One whose environment was removed meanwhile is an error of its groups."""
    text = PACKAGE.replace("version", 'libraries = ["mylib@1.0"]\nversion')
    source = tar_of({"algorithm.toml": text.encode(), "main.c": PRINT_TWO})
    catalog.add_library("mylib", "1.0", tar_of(LIBRARY_FILES), "ann", "c", "")
    catalog.add_algorithm("sums-c", "1", source, "ann")
    catalog.remove_library("mylib", "ann")
    lost = source_of().replace(b'version = "1"', b'version = "1"\n# environment = "ocean"')
    catalog.add_algorithm("lines", "1", lost, "ann")
    title = {"title": texts[0]}
    asked = {"operation": "algorithm", "algorithm": "sums-c", "parameters": {"factor": 7}}
    with working(jobs):
        job = ended(jobs, jobs.submit({"file": texts}, Options.from_mapping(asked), "me"))
        other = jobs.submit({"file": texts[:1]}, options_of(Path(texts[0]), files=title), "me")
        other = ended(jobs, other)
    assert tables(jobs, job) == {"all": "2,7"}, jobs.rows(job.id)
    assert "there is no environment 'ocean'" in jobs.rows(other.id)[-1].reason


def test_neighbours_are_counted_before_they_are_rows(
    catalog: Catalog, texts: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of 4 granules has the one before it, but the first, and a result."""
    catalog.add_algorithm("lines", "1", source_of(before=1), "me")
    table = {"file": texts, "start": [f"2005-05-0{day}" for day in range(1, 5)]}
    for most, text in ((6, "6 rows, not 7"), (10, "10 rows, not 11")):
        with (
            Jobs(catalog, tmp_path / f"r{most}", limits=Limits(rows_per_job=most)) as few,
            pytest.raises(LimitError, match=text),
        ):
            few.submit(table, options_of(tmp_path / "title.txt"), "me")
    monkeypatch.setattr("swathe.jobs.algorithm_rows._rows_of", None)
    with (
        Jobs(catalog, tmp_path / "r", limits=Limits(rows_per_job=6)) as few,
        pytest.raises(LimitError),
    ):
        few.submit(table, options_of(tmp_path / "title.txt"), "me")


@pytest.mark.parametrize("most_open", [0, 2, 256])
def test_a_link_put_into_a_store_meanwhile_leads_nowhere(
    jobs: Jobs,
    catalog: Catalog,
    texts: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    most_open: int,
) -> None:
    """Files are replaced between the look of the portal and the start of the program."""
    catalog.add_algorithm("lines", "1", source_of("all"), "me")
    (tmp_path / "secret").write_text("secret")
    title = tmp_path / "title.txt"

    def late(*given: Any) -> GroupRun:
        for path in (title, *map(Path, texts[:3])):
            path.unlink()
            path.symlink_to(tmp_path / "secret")
        return run_group(*given)

    monkeypatch.setattr("swathe.workers.algorithm_groups.run_group", late)
    monkeypatch.setattr("swathe.workers.input_files.MOST_OPEN", most_open)
    with working(jobs):
        job = ended(jobs, jobs.submit({"file": texts[:3]}, options_of(title), "me"))
    assert not jobs.rows(job.id)[-1].reason
    (table,) = tables(jobs, job).values()
    assert table.startswith("title,1\n") and "secret" not in table
    assert [line.rpartition(",")[2] for line in table.splitlines()[1:]] == [
        f"text {number}" for number in range(3)
    ]


def test_another_file_at_the_path_is_refused(tmp_path: Path) -> None:
    path, secret = tmp_path / "a", tmp_path / "secret"
    path.write_text("own")
    secret.write_text("not")
    source = _swathe.Stores("[]").open(str(path))
    files = InputFiles(tmp_path, lambda: False)
    link = files.add(source, path, "own")
    assert link.read_text() == "own"
    place = os.readlink(link)
    path.unlink()
    path.symlink_to(secret)
    with pytest.raises(ChangedError, match="found another"):
        files.add(source, path, "link")
    files.close()
    assert not link.is_symlink() and not os.path.lexists(place)


def test_estimates_have_what_orders_take_beside_their_programs(
    jobs: Jobs, catalog: Catalog, texts: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog.add_algorithm("lines", "1", source_of(), "me")
    table, options = {"file": texts[:2]}, options_of(tmp_path / "title.txt")
    with working(jobs):
        job = ended(jobs, jobs.submit(table, options, "me"))
    assert job.phase == "COMPLETED"
    cost = jobs.estimate(table, options).prediction
    assert cost is not None
    first = cost.median_s - cost.overhead_s
    assert cost.interval_s[0] <= cost.median_s <= cost.interval_s[1]
    orders = [PastJob("algorithm", "zip", 4, 0.0, 1.0, 6.0 + n / 10) for n in range(20)]
    monkeypatch.setattr(
        type(catalog), "past_jobs", lambda *_: [PastJob("cut", "zip", 4, 99, 1), *orders]
    )
    cost = jobs.estimate(table, options).prediction
    assert cost is not None
    assert cost.overhead_s == pytest.approx(6, rel=0.1)
    assert cost.median_s == pytest.approx(first + cost.overhead_s)


def test_jobs_remember_how_long_they_took(
    jobs: Jobs, catalog: Catalog, texts: list[str], tmp_path: Path
) -> None:
    catalog.add_algorithm("lines", "1", source_of(), "me")
    table, options = {"file": texts[:2]}, options_of(tmp_path / "title.txt")
    with working(jobs):
        for _ in range(2):  # the first has no prediction
            job = ended(jobs, jobs.submit(table, options, "me"))
    [past] = catalog.past_jobs(10)
    assert (past.operation, past.format, past.rows) == ("algorithm", "zip", 4)
    assert job.started_at is not None and job.ended_at is not None
    assert past.elapsed_s == pytest.approx((job.ended_at - job.started_at).total_seconds())
