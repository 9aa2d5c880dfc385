"""Staging by a site's own program, and the model of a tape library."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from swathe.core.errors import OutputExistsError, StagingError
from swathe.stores.staging.command_stager import CommandStager
from swathe.stores.staging.model_library import ModelLibrary, sample_library
from swathe.stores.staging.stager import ObjectPlace, in_tape_order
from tests.support.portals import wait_until


@pytest.fixture
def script(tmp_path: Path) -> Callable[..., CommandStager]:
    """Make a program of a shell that answers as it is told."""

    def make(body: str, timeout_s: float = 60.0) -> CommandStager:
        path = tmp_path / "script"
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
        return CommandStager(str(path), timeout_s)

    return make


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("exit 3", "script locate: expected exit code 0, found 3"),
        ("echo no tape >&2; exit 1", "found 1: no tape"),
        ("echo no JSON", "script locate: expected JSON, found b'no JSON'"),
        ("echo '[1]'", r"expected lines of JSON objects, found \[1\]"),
        ("true", "expected an answer for each object, found none for a"),
        ("""echo '{"path": "b", "locality": "disk"}'""", "expected objects that were asked for"),
        ("""echo '{"path": 7, "locality": "disk"}'""", "expected a text as 'path'"),
        ("""echo '{"path": "a", "locality": "shelf"}'""", "expected locality one of disk, near"),
        ("""echo '{"path": "a", "locality": "disk", "bytes": -1}'""", "expected bytes a whole"),
        ("""echo '{"path": "a", "locality": "disk", "medium": []}'""", "a text as 'medium'"),
        ("printf '[%.0s' $(seq 20000)", "expected JSON"),
        ("head -c 100000 /dev/zero", "expected lines of at most 65536 bytes"),
        ("yes '{}' | head -n 200", "script locate: expected at most 1 lines, found more"),
        (r"printf '\033[2Jno\ntape' >&2; exit 1", r"found 1: \\x1b\[2Jno tape$"),
    ],
)
def test_a_wrong_answer_is_an_error_that_names_the_program(
    script: Callable[..., CommandStager], body: str, message: str
) -> None:
    with pytest.raises(StagingError, match=message):
        script(body).locate(["a"])


def test_reasons_are_one_line_that_no_terminal_obeys(script: Callable[..., CommandStager]) -> None:
    answer = r'{"path": "a", "locality": "lost", "reason": "\u001b[2Jno\ntape"}'
    places = script(f"cat <<'END'\n{answer}\nEND").locate(["a"])
    assert places["a"].reason == r"\x1b[2Jno tape"


def test_a_program_that_never_answers_is_ended(
    script: Callable[..., CommandStager], tmp_path: Path
) -> None:
    stager = script(f"sleep 600 & echo $! > {tmp_path}/pid; wait", 1.0)
    with pytest.raises(StagingError, match="expected an answer within 1 s, found none"):
        stager.locate(["a"])
    stat = Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}/stat")
    # It is killed; on a busy machine it takes a moment to go.
    wait_until(lambda: not stat.exists() or stat.read_text().split()[2] == "Z")


def test_a_program_that_writes_without_end_is_ended(script: Callable[..., CommandStager]) -> None:
    with pytest.raises(StagingError, match=r"expected up to .* found more"):
        script("exec cat /dev/zero").locate(["a"])


def test_a_program_that_is_not_there() -> None:
    with pytest.raises(StagingError, match="/nowhere/library: expected a program that can be"):
        CommandStager("/nowhere/library").locate(["a"])


@pytest.mark.parametrize(
    ("action", "body", "message"),
    [
        ("stage", "true", "stage: expected one line with a request, found 0"),
        ("stage", "echo '{}'", "expected a text as 'request'"),
        ("poll", """echo '{"path": "a", "state": "on disk"}'""", "expected state one of queued"),
    ],
)
def test_wrong_answers_of_other_actions(
    script: Callable[..., CommandStager], action: str, body: str, message: str
) -> None:
    stager = script(body)
    with pytest.raises(StagingError, match=message):
        _ = stager.stage(["a"], 60) if action == "stage" else stager.poll("r", ["a"])


def test_the_program_reads_json_lines(script: Callable[..., CommandStager], tmp_path: Path) -> None:
    stager = script(f'cat > {tmp_path}/$1; echo \'{{"request": "r"}}\' ')
    assert stager.stage(["a/b", "c\nd"], 60) == "r"
    assert (tmp_path / "stage").read_text().splitlines() == [
        '{"path": "a/b", "lifetime_s": 60}',
        '{"path": "c\\nd", "lifetime_s": 60}',
    ]
    stager.release("r", ["a/b"])
    assert (tmp_path / "release").read_text() == '{"request": "r"}\n{"path": "a/b"}\n'
    stager.evict(["a/b"])
    assert (tmp_path / "evict").read_text() == '{"path": "a/b"}\n'


def test_objects_of_a_medium_stand_together_by_position() -> None:
    places = {
        name: ObjectPlace(name, "nearline", 1, medium, position)
        for name, medium, position in [
            ("a", "T2", 1), ("b", "T1", 9), ("c", None, None), ("d", "T1", 2), ("e", "T2", None),
        ]
    }  # fmt: skip
    assert in_tape_order(places) == ["d", "b", "a", "e", "c"]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ModelLibrary:
    return sample_library(tmp_path_factory.mktemp("tape") / "t", objects=6, media=2, scale=1e-3)


def test_the_model_brings_objects_to_disk_and_removes_them(library: ModelLibrary) -> None:
    stager = CommandStager(str(library.program))
    names = ["frame-0001.fits", "frame-0002.fits"]
    places = stager.locate([*names, "none.fits"])
    assert [place.locality for place in places.values()] == ["nearline", "nearline", "lost"]
    assert places[names[1]].medium == "T00001"
    token = stager.stage(names, 3600)
    while {state.state for state in stager.poll(token, names).values()} != {"disk"}:
        pass
    assert {place.locality for place in stager.locate(names).values()} == {"disk"}
    assert (library.disk / names[0]).read_bytes() == (
        library.folder / "tape" / names[0]
    ).read_bytes()
    stager.release(token, names[:1])
    assert [at.locality for at in stager.locate(names).values()] == ["nearline", "disk"]
    stager.evict(names)
    assert not (library.disk / names[1]).exists()


def test_the_model_mounts_a_medium_once_for_objects_that_follow(library: ModelLibrary) -> None:
    """In the order of tapes two drives mount two media; else each object waits for a mount."""
    names = [f"frame-{number:04}.fits" for number in (1, 3, 5, 2, 4, 6)]
    request = library.stage([{"path": name, "lifetime_s": 60} for name in names])
    with library._state() as state:
        ends = dict(state.execute("SELECT path, end_s FROM tasks WHERE request = ?", (request,)))
        begins = dict(state.execute("SELECT path, start_s FROM tasks"))
    assert begins[names[1]] == ends[names[0]] and begins[names[4]] == ends[names[3]]
    assert max(ends.values()) - min(begins.values()) < 1e-3 * 2 * 45
    library.evict(names)


def test_a_library_replaces_no_files(library: ModelLibrary) -> None:
    with pytest.raises(OutputExistsError, match="expected a new folder"):
        sample_library(library.folder)
