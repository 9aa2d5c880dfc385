"""Jobs on objects on tape wait without a worker, and start on what has come."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from astropy.io import fits

from swathe.catalog import Catalog
from swathe.core.errors import StagingError
from swathe.jobs import Job, Jobs, Limits, Options
from swathe.portal.vo.uws.documents import job_document
from swathe.stores.staging import on_disk, stage_wait, stagers, store_staging
from swathe.stores.staging.hold import TapeHold
from swathe.stores.staging.model_library import ModelLibrary, sample_library
from swathe.stores.staging.stager import StageProgress
from tests.support.job_runner import PATIENCE_S, contents_of, ended, running
from tests.support.tape_library import LibraryStager

NAMES = [f"frame-{number:04}.fits" for number in range(1, 5)]


class HeldStager(LibraryStager):
    """A library that gives objects only when a test says so.

    Attributes:
        queue: objects that stay in the queue.
        faulty: objects whose tape is broken.
        silent: whether the service fails.
    """

    def __init__(self, library: ModelLibrary) -> None:
        super().__init__(library)
        self.queue: set[str] = set()
        self.faulty: set[str] = set()
        self.requests: list[str] = []
        self.silent = False

    def stage(self, paths: Any, lifetime_s: float) -> str:
        if self.silent:
            raise StagingError("the service does not answer")
        self.requests += paths
        return super().stage(paths, lifetime_s)

    def poll(self, token: str, paths: Any) -> dict[str, StageProgress]:
        states = super().poll(token, paths)
        for path in self.queue & states.keys():
            states[path] = StageProgress(path, "queued", 1)
        for path in self.faulty & states.keys():
            states[path] = StageProgress(path, "failed", reason="the tape is broken")
        return states


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ModelLibrary:
    return sample_library(tmp_path_factory.mktemp("tape") / "t", objects=4, media=2, scale=1e-3)


@pytest.fixture
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Jobs]:
    url = f"sqlite:///{tmp_path}/catalog.sqlite"
    monkeypatch.setenv("SWATHE_DATABASE", url)
    with (
        Catalog.open(url) as catalog,
        Jobs(catalog, tmp_path / "results", limits=Limits()) as made,
    ):
        yield made


@pytest.fixture
def tape(
    jobs: Jobs, library: ModelLibrary, monkeypatch: pytest.MonkeyPatch
) -> Iterator[HeldStager]:
    """The model as the store `tape`, with all objects on tape; calls take a millisecond."""
    stager = HeldStager(library)
    for module in (store_staging, stagers):
        monkeypatch.setattr(module, "stager_of", lambda _: stager)
    monkeypatch.setattr(stage_wait, "FIRST_PAUSE_S", 0.02)
    monkeypatch.setattr(stage_wait, "LONGEST_PAUSE_S", 0.2)
    monkeypatch.setattr("swathe.jobs.staging.LOOK_S", 0.1)
    options = {"staging": "command", "staging_command": str(library.program)}
    jobs.catalog.add_store("tape", str(library.disk), "tape", options)
    on_disk.forget_places()
    yield stager
    library.evict(NAMES)


def targets(*names: str) -> dict[str, list[Any]]:
    count = len(names)
    sides = {"width": [30] * count, "height": [40] * count}
    return {"file": list(names), "x0": [1] * count, "y0": [2] * count, **sides}


def on_tape(*numbers: int) -> list[str]:
    return [f"tape:{NAMES[number]}" for number in numbers]


def wait_until(jobs: Jobs, job: Job, is_so: Callable[[Job], object]) -> Job:
    limit = time.monotonic() + PATIENCE_S
    while time.monotonic() < limit:
        job = jobs.job(job.id)
        if is_so(job):
            return job
        time.sleep(0.02)
    raise AssertionError(f"it does not come: {job}")


def pins(jobs: Jobs) -> list[str]:
    return sorted(pin.file.path for pin in jobs.catalog.stage_pins("tape", ""))


def wait_for_no_pins(jobs: Jobs, library: ModelLibrary) -> None:
    limit = time.monotonic() + PATIENCE_S

    def are_left() -> bool:
        near = jobs.catalog.near_pins("job-")
        return bool(pins(jobs) or near or any(library.disk.glob("*.fits")))

    while are_left() and time.monotonic() < limit:
        time.sleep(0.02)
    assert not are_left()


def check_pixels(jobs: Jobs, job: Job, library: ModelLibrary, numbers: list[int]) -> None:
    for row, number in zip(jobs.rows(job.id), numbers, strict=True):
        expected = fits.getdata(library.folder / "tape" / NAMES[number])
        content = contents_of(jobs.result(job.id, row.name))
        cutout = fits.HDUList.fromstring(content)[0].data
        assert np.array_equal(cutout, expected[2:42, 1:31])


def test_a_job_starts_on_what_has_come(jobs: Jobs, tape: HeldStager, library: ModelLibrary) -> None:
    tape.queue = set(NAMES[2:])
    with running(jobs) as runner:
        job = jobs.submit(targets(*on_tape(3, 0, 2, 1)), Options(), "me")
        job = wait_until(jobs, job, lambda job: job.counts["ok"] == 2 and job.phase == "STAGING")
        assert job.staging is not None
        assert [job.staging[name] for name in ("objects", "come", "failed")] == [4, 2, 0]
        assert {row.source for row in jobs.rows(job.id, status="ok")} == set(on_tape(0, 1))
        wait_until(jobs, job, lambda _: pins(jobs) == NAMES[2:])
        assert runner._pool.status().batches == 0
        assert jobs.catalog.waiting() == []
        tape.queue = set()
        job = ended(jobs, job)
        assert (job.phase, job.counts["ok"]) == ("COMPLETED", 4)
        check_pixels(jobs, job, library, [3, 0, 2, 1])
        wait_for_no_pins(jobs, library)
    assert sorted(tape.requests) == NAMES


def test_plain_rows_do_not_wait_for_tape(
    jobs: Jobs, tape: HeldStager, library: ModelLibrary
) -> None:
    tape.queue = set(NAMES)
    plain = str(library.folder / "tape" / NAMES[0])
    with running(jobs):
        job = jobs.submit(targets(*on_tape(1), plain), Options(), "me")
        job = wait_until(jobs, job, lambda job: job.counts["ok"] == 1 and job.phase == "STAGING")
        jobs.delete(job.id)
        wait_for_no_pins(jobs, library)


def test_lost_objects_are_errors_of_their_rows(
    jobs: Jobs, tape: HeldStager, library: ModelLibrary
) -> None:
    tape.faulty = {NAMES[1]}
    with running(jobs):
        job = jobs.submit(targets(*on_tape(0, 1), "tape:none.fits"), Options(), "me")
        job = ended(jobs, job)
        assert (job.phase, job.counts["ok"], job.counts["error"]) == ("COMPLETED", 1, 2)
        reasons = {row.source: row.reason for row in jobs.rows(job.id, status="error")}
        assert reasons == {
            f"tape:{NAMES[1]}": f"tape:{NAMES[1]}: the tape is broken",
            "tape:none.fits": "tape:none.fits: no such object",
        }
        assert job.staging is not None and job.staging["failed"] == 2
        tape.faulty = set()
        job = ended(jobs, jobs.resume(job.id))
        assert (job.counts["ok"], job.counts["error"]) == (2, 1)
        wait_until(jobs, job, lambda _: not pins(jobs))


def test_a_job_that_is_cancelled_while_staging_ends_at_once(
    jobs: Jobs, tape: HeldStager, library: ModelLibrary
) -> None:
    tape.queue = set(NAMES)
    with running(jobs):
        job = jobs.submit(targets(*on_tape(0, 1)), Options(), "me")
        wait_until(jobs, job, lambda _: pins(jobs) == NAMES[:2])
        assert jobs.cancel(job.id).phase == "ABORTED"
        wait_for_no_pins(jobs, library)
        tape.queue = set()
        job = ended(jobs, jobs.resume(job.id))
        assert job.counts["ok"] == 2


def test_a_service_that_does_not_answer_is_shown_and_asked_again(
    jobs: Jobs, tape: HeldStager, library: ModelLibrary
) -> None:
    tape.silent = True
    with running(jobs):
        job = jobs.submit(targets(*on_tape(0)), Options(), "me")
        job = wait_until(jobs, job, lambda job: job.staging and job.staging["faults"])
        assert job.phase == "STAGING"
        assert job.staging is not None
        assert job.staging["faults"] == {"tape": "the service does not answer"}
        document = job_document(job, []).decode()
        assert "<uws:phase>QUEUED</uws:phase>" in document
        assert "<swathe:staging>1 object, 0 come from tape; asked for since" in document
        tape.silent = False
        job = ended(jobs, job)
        assert job.staging is not None
        assert (job.counts["ok"], job.staging["faults"]) == (1, {})


def test_another_runner_goes_on_without_a_second_request(
    jobs: Jobs, tape: HeldStager, library: ModelLibrary
) -> None:
    tape.queue = set(NAMES)
    with running(jobs):
        job = jobs.submit(targets(*on_tape(0, 1)), Options(), "me")
        wait_until(jobs, job, lambda _: pins(jobs) == NAMES[:2])
    with running(jobs):
        tape.queue = set()
        job = ended(jobs, jobs.job(job.id))
        assert job.counts["ok"] == 2
        wait_for_no_pins(jobs, library)
    assert sorted(tape.requests) == NAMES[:2]


def test_rows_whose_pins_have_ended_wait_again(
    jobs: Jobs, tape: HeldStager, library: ModelLibrary
) -> None:
    job = jobs.submit(targets(*on_tape(0)), Options(), "me")
    # As a runner that was killed left it long ago.
    has_moved = jobs.catalog.move_staged_rows(
        jobs.catalog.job(job.id).number,
        lambda _: True,
        "tape",
        lambda before, _: before,
        lambda *_: 10,
    )
    assert has_moved and jobs.job(job.id).phase == "QUEUED"
    with running(jobs):
        job = ended(jobs, job)
    assert (job.counts["ok"], tape.requests) == (1, NAMES[:1])


@pytest.fixture
def near(jobs: Jobs, tape: HeldStager, tmp_path: Path) -> Path:
    """The folder of the cache `hot` in front of the tape."""
    folder = tmp_path / "near"
    jobs.catalog.add_store("hot", "cache:", over=[str(folder)], of="tape", limit_bytes=10**8)
    return folder


def in_cache(*numbers: int) -> list[str]:
    return [f"hot:{NAMES[number]}" for number in numbers]


def test_jobs_behind_a_cache_wait_and_stage_an_object_once(
    jobs: Jobs, tape: HeldStager, library: ModelLibrary, near: Path
) -> None:
    tape.queue = set(NAMES[1:])
    table = targets(*in_cache(0, 1))
    note = "tape: 2 objects on tape, 1.011 MiB; staging was never measured here"
    assert jobs.estimate(table, Options()).staging == [note]
    with running(jobs) as runner:
        both = [jobs.submit(table, Options(), name) for name in ("me", "you")]
        for job in both:
            job = wait_until(
                jobs, job, lambda job: job.counts["ok"] == 1 and job.phase == "STAGING"
            )
            assert job.staging is not None
            assert [job.staging[name] for name in ("objects", "come", "failed")] == [2, 1, 0]
        wait_until(jobs, job, lambda _: runner._pool.status().batches == 0)
        tape.queue = set()
        for job in both:
            job = ended(jobs, job)
            assert (job.phase, job.counts["ok"]) == ("COMPLETED", 2)
            check_pixels(jobs, job, library, [0, 1])
        wait_for_no_pins(jobs, library)
    assert tape.requests == NAMES[:2]
    assert sorted(path.name for path in near.rglob("*.fits")) == NAMES[:2]


def test_copies_in_a_cache_are_pinned_for_a_job_and_not_staged(
    jobs: Jobs, tape: HeldStager, library: ModelLibrary, near: Path
) -> None:
    with TapeHold() as hold:
        hold.bring(in_cache(0))
    tape.queue, tape.requests = set(NAMES), []
    with running(jobs):
        job = jobs.submit(targets(*in_cache(0, 1)), Options(), "me")
        job = wait_until(jobs, job, lambda job: job.counts["ok"] == 1 and pins(jobs))
        wait_until(jobs, job, lambda _: tape.requests == NAMES[1:2])
        again = jobs.submit(targets(*in_cache(0), *in_cache(2)), Options(), "me")
        wait_until(jobs, again, lambda job: job.counts["ok"] == 1)
        assert tape.requests == NAMES[1:3]
        for each in (job, again):
            jobs.cancel(each.id)
        wait_for_no_pins(jobs, library)
        assert jobs.catalog.near_pins("job-") == []


def test_an_estimate_shows_staging_apart(jobs: Jobs, tape: HeldStager) -> None:
    table = targets(*on_tape(0, 1), "tape:none.fits")
    estimate = jobs.estimate(table, Options())
    assert estimate.prediction is None
    note = "tape: 2 objects on tape, 1.011 MiB; staging was never measured here"
    assert estimate.staging == [note]
    assert [reason for _, reason in estimate.faults] == [
        "tape:none.fits: expected an object on disk, found it lost: no such object"
    ]
