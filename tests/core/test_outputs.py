"""Nothing that is read is ever replaced, and nothing that exists unless that is asked for."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, cast
from unittest.mock import patch

import numpy as np
import pytest
from astropy.io import fits
from astropy.table import Table
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import swathe
from swathe import cut_many
from swathe.catalog import Catalog
from swathe.cli.app import main
from swathe.client.connection import PortalConnection
from swathe.client.job import RemoteJob
from swathe.core.errors import OutputError, OutputExistsError, SwatheError
from swathe.core.outputs import check_new, make_folder, open_part_file, sole_writer, write_file
from swathe.core.sample_survey import KINDS, make_sample
from swathe.experiments.results.report import ready
from swathe.jobs import Jobs, Limits, Options
from tests.support.fits_frames import command_here
from tests.support.job_runner import ended, running
from tests.support.property_examples import examples
from tests.support.sample_surveys import new_sample


@pytest.fixture
def image(tmp_path: Path) -> Path:
    path = tmp_path / "a.fits"
    fits.PrimaryHDU(np.arange(400, dtype=np.int16).reshape(20, 20)).writeto(path)
    return path


def save(path: Path, content: bytes = b"new", **options: object) -> None:
    write_file(path, lambda file: file.write(content), **options)  # type: ignore[arg-type]


def boxes(*rows: tuple[str, Path]) -> dict[str, list[object]]:
    table: dict[str, list[object]] = {"id": [name for name, _ in rows]}
    table["file"] = [str(path) for _, path in rows]
    return table | {name: [3] * len(rows) for name in ("x0", "y0", "width", "height")}


# One file.


def test_a_file_that_exists_is_replaced_only_if_asked(tmp_path: Path) -> None:
    path = tmp_path / "x"
    save(path, b"old")
    with pytest.raises(OutputExistsError, match=r"x: exists already; give --overwrite"):
        save(path)
    assert path.read_bytes() == b"old"
    with pytest.raises(FileExistsError):
        save(path)
    save(path, overwrite=True)
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["x"]


def test_a_file_that_comes_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "x"

    def slow(file: object) -> None:
        path.write_bytes(b"of another")

    with pytest.raises(OutputExistsError):
        write_file(path, slow)
    assert path.read_bytes() == b"of another"
    assert os.listdir(tmp_path) == ["x"]


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("kind", ["name", "spelling", "symbolic link", "hard link"])
def test_a_source_is_never_replaced(kind: str, overwrite: bool, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"precious")
    path = tmp_path / "link"
    match kind:
        case "name":
            path = source
        case "spelling":
            path = tmp_path / ".." / tmp_path.name / "source"
        case "symbolic link":
            path.symlink_to(source)
        case _:
            path.hardlink_to(source)
    with pytest.raises(OutputError, match="it is the source") as raised:
        save(path, overwrite=overwrite, sources=[tmp_path / "none", source])
    assert str(path) in str(raised.value)
    assert str(source) in str(raised.value)
    assert source.read_bytes() == b"precious"


def test_a_link_is_replaced_and_not_what_it_points_to(tmp_path: Path) -> None:
    (tmp_path / "run5").write_bytes(b"kept")
    (tmp_path / "latest").symlink_to("run5")
    (tmp_path / "dangling").symlink_to("none")
    for name in ("latest", "dangling"):
        with pytest.raises(OutputExistsError):
            save(tmp_path / name)
        save(tmp_path / name, overwrite=True)
    assert (tmp_path / "run5").read_bytes() == b"kept"
    assert not (tmp_path / "none").exists()


def test_messages_name_the_file_and_no_temporary_one(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for path, said in (
        (tmp_path / "none" / "x", rf"none/x: cannot write: the folder {tmp_path}/none does not"),
        (tmp_path / "file" / "x", "file/x: cannot write: the folder .*file exists and is not a"),
        (tmp_path, "cannot write: it is a folder"),
        (Path("/dev/null"), "/dev/null: cannot write: it is not a regular file"),
    ):
        with pytest.raises(OutputError, match=said):
            save(path, overwrite=True)
    with pytest.raises(OutputError, match="file: exists and is not a folder"):
        make_folder(tmp_path / "file")


def test_a_failure_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "x"
    save(path, b"old")

    def fails(file: object) -> None:
        raise ValueError("half way")

    with pytest.raises(ValueError, match="half way"):
        write_file(path, fails, overwrite=True)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["x"]


# Many files.


def test_names_are_compared_with_the_folder(tmp_path: Path) -> None:
    check_new(tmp_path / "none", ["a"])
    for name in ("a", "b", "other"):
        (tmp_path / name).write_bytes(b"")
    check_new(tmp_path, ["c"])
    with pytest.raises(OutputExistsError, match=r"a: exists already.*\(and 1 more results\)"):
        check_new(tmp_path, ["c", "a", "b"])
    check_new(tmp_path, ["c", "a", "b"], overwrite=True, sources=lambda: [tmp_path / "other"])
    with pytest.raises(OutputError, match="b: cannot write: it is the source"):
        check_new(tmp_path, ["a", "b"], overwrite=True, sources=lambda: [tmp_path / "b"])


def test_two_writers_of_one_output(tmp_path: Path) -> None:
    path = tmp_path / "manifest"
    with sole_writer(path):
        with pytest.raises(OutputError, match="another process is writing"), sole_writer(path):
            pass
        with sole_writer(tmp_path / "other"):
            pass
    (tmp_path / ".manifest.lock").write_bytes(b"")  # of a process that was killed
    with sole_writer(path):
        pass
    assert os.listdir(tmp_path) == []


# Cuts.


def test_a_cutout_does_not_replace_its_image(image: Path) -> None:
    before = image.read_bytes()
    cutout = swathe.cut(image, box=(1, 1, 5, 5))
    for overwrite in (False, True):
        with pytest.raises(OutputError, match=f"it is the source {image}"):
            cutout.write(image, overwrite=overwrite)
    assert image.read_bytes() == before


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("output", [".", "a.fits"])
def test_many_cuts_do_not_replace_an_image(output: str, overwrite: bool, image: Path) -> None:
    before = image.read_bytes()
    rows = boxes(("b", image), ("a", image))
    with pytest.raises(OutputError, match=r"a\.fits: cannot write: it is the source"):
        cut_many(rows, image.parent / output, overwrite=overwrite)
    assert image.read_bytes() == before
    assert os.listdir(image.parent) == ["a.fits"]


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize(
    ("output", "source", "wanted"),
    [
        *((f"o.{kind}", f".o.{kind}.part", "fits") for kind in ("zip", "tar", "fits")),
        *((f"o.{kind}", f".o.{kind}.manifest.ecsv.part", "fits") for kind in ("zip", "fits")),
        (".", ".swathe-1-2.part", "fits"),
        (".", ".swathe-cut-many.part/0.fits", "npy"),
        (".", ".swathe-cut-many.part/deep/0.fits", "png"),
    ],
)
def test_what_is_written_on_the_way_replaces_no_source(
    output: str, source: str, wanted: Any, overwrite: bool, image: Path
) -> None:
    """Names that a run uses and removes may be those of images, or of links to them."""
    path = image.parent / source
    path.parent.mkdir(parents=True, exist_ok=True)
    path.hardlink_to(image)
    before = image.read_bytes()
    for each in (path, image):
        with pytest.raises(OutputError, match=f"{path}: cannot write: it is the source {each}"):
            cut_many(
                boxes(("q", each)),
                image.parent / output,
                format=wanted,
                overwrite=overwrite,
                resume=not overwrite,
            )
        assert path.read_bytes() == image.read_bytes() == before


@pytest.mark.parametrize("output", [".", "o.zip"])
def test_a_source_is_no_lock(output: str, image: Path) -> None:
    name = ".manifest.ecsv.lock" if output == "." else ".o.manifest.ecsv.lock"
    lock = image.rename(image.parent / name)
    before = lock.read_bytes()
    with pytest.raises(OutputError, match=r"expected an empty lock, found a file of [0-9,]+ bytes"):
        cut_many(boxes(("q", lock)), image.parent / output, overwrite=True)
    assert lock.read_bytes() == before


def test_cuts_on_the_way_follow_no_link(image: Path, tmp_path: Path) -> None:
    elsewhere, output = tmp_path / "elsewhere", tmp_path / "out"
    elsewhere.mkdir()
    output.mkdir()
    (elsewhere / "0.fits").write_bytes(b"mine")
    (output / ".swathe-cut-many.part").symlink_to(elsewhere)
    with pytest.raises(OutputError, match=r"\.swathe-cut-many\.part: cannot make the folder"):
        cut_many(boxes(("q", image)), output, format="npy", overwrite=True)
    assert (elsewhere / "0.fits").read_bytes() == b"mine"


@pytest.mark.parametrize("output", ["out", "out.zip", "out.tar", "out.fits"])
def test_a_second_run_is_refused_before_it_cuts(output: str, image: Path) -> None:
    path = image.parent / output
    cut_many(boxes(("b", image)), path)
    files = [each for each in image.parent.rglob("*") if each.is_file()]
    before = {file: file.read_bytes() for file in files}
    with pytest.raises(
        OutputExistsError, match=r"--overwrite \(overwrite=True in Python\) .* or --resume"
    ):
        cut_many(boxes(("c", image)), path)
    files = [each for each in image.parent.rglob("*") if each.is_file()]
    assert {file: file.read_bytes() for file in files} == before
    assert list(cut_many(boxes(("c", image)), path, overwrite=True)["status"]) == ["ok"]


def test_other_files_of_a_folder_stay(image: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "other.fits").write_bytes(b"mine")
    (folder / "b.fits").write_bytes(b"mine, too")
    with pytest.raises(OutputExistsError, match=r"b\.fits: exists already"):
        cut_many(boxes(("b", image)), folder)
    cut_many(boxes(("b", image)), folder, overwrite=True)
    assert (folder / "other.fits").read_bytes() == b"mine"
    assert fits.getdata(folder / "b.fits").shape == (3, 3)
    (folder / "c.fits").write_bytes(b"not of that run")
    with pytest.raises(OutputExistsError, match=r"c\.fits: exists already"):
        cut_many(boxes(("b", image), ("c", image)), folder, resume=True)
    assert (folder / "c.fits").read_bytes() == b"not of that run"


def test_two_runs_into_one_archive(image: Path, tmp_path: Path) -> None:
    path = tmp_path / "out.zip"
    with (
        sole_writer(tmp_path / "out.manifest.ecsv"),
        pytest.raises(OutputError, match="another process is writing"),
    ):
        cut_many(boxes(("b", image)), path)
    assert not path.exists()


@pytest.mark.parametrize("output", ["out.zip", "out.tar", "out.fits"])
def test_an_archive_is_replaced_when_the_new_one_is_whole(
    output: str, image: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / output
    cut_many(boxes(("b", image)), path)
    before = {file: file.read_bytes() for file in tmp_path.iterdir()}

    class Died(BaseException):
        pass

    def dies(*_: object, **__: object) -> None:
        raise Died

    with monkeypatch.context() as patch:
        patch.setattr("swathe.cutting.cut_run.CutRun._collect", dies)
        patch.setattr("swathe.cutting.cut_run.CutRun.close", dies)
        with pytest.raises(Died):
            cut_many(boxes(("c", image)), path, overwrite=True)
    assert {file: file.read_bytes() for file in before} == before
    with pytest.raises(OutputExistsError, match=r"\.part; give --resume .* to continue"):
        cut_many(boxes(("c", image)), path)
    with pytest.raises(OutputExistsError, match="exists already"):
        cut_many(boxes(("c", image)), path, resume=True)
    cut_many(boxes(("c", image)), path, resume=True, overwrite=True)
    assert set(os.listdir(tmp_path)) == {"a.fits", "out.manifest.ecsv", output}


@pytest.mark.parametrize("output", ["out.zip", "out.tar", "out.fits"])
def test_an_archive_holds_its_manifest(output: str, image: Path, tmp_path: Path) -> None:
    rows = boxes(("b", image), ("späť", tmp_path / "none.fits"))
    made = cut_many(rows, tmp_path / output)
    beside = (tmp_path / "out.manifest.ecsv").read_bytes()
    match output[-3:]:
        case "zip":
            with zipfile.ZipFile(tmp_path / output) as archive:
                assert archive.testzip() is None
                assert archive.namelist() == ["b.fits", "manifest.ecsv"]
                assert archive.read("manifest.ecsv") == beside
        case "tar":
            with tarfile.open(tmp_path / output) as members:
                assert members.getnames() == ["b.fits", "manifest.ecsv"]
                member = members.extractfile("manifest.ecsv")
                assert member is not None
                assert member.read() == beside
        case _:
            table = Table.read(tmp_path / output, hdu="MANIFEST")
            assert table.colnames == made.colnames
            assert list(table["status"].astype(str)) == ["ok", "missing"]
            assert str(table["id"][1]) == r"sp\xe4\u0165"


# Whatever the names: no source changes.

NAMES = st.sampled_from(["a", "b", "c", "a-link", "b-hard", "new"])
PLACES = st.sampled_from(
    ["{0}.fits", "{0}.zip", "{0}.tar", "./{0}.fits", "../{1}/{0}.fits", "loop/{0}.fits", "{0}.npy"]
)
FOLDERS = st.sampled_from([".", "loop", "../{1}", "out", "o.zip", "o.tar", "a.fits", "a-link.fits"])


FORMATS: st.SearchStrategy[Literal["fits", "npy"]] = st.sampled_from(["fits", "npy"])


def survey(folder: Path) -> None:
    """Write images, and links to them."""
    for name in "abc":
        pixels = np.full((20, 20), ord(name), np.int16)
        fits.PrimaryHDU(pixels).writeto(folder / f"{name}.fits")
    (folder / "a-link.fits").symlink_to("a.fits")
    (folder / "b-hard.fits").hardlink_to(folder / "b.fits")
    (folder / "loop").symlink_to(".")
    # Outputs of these names begin as others, under which links lead to sources.
    (folder / ".o.zip.part").symlink_to("a.fits")
    (folder / ".o.tar.part").hardlink_to(folder / "c.fits")
    # What results are made of would lie in folders of these names.
    (folder / ".o.zip.cut.part").symlink_to(".")
    (folder / ".swathe-cut-many.part").symlink_to(".")
    for name in ("a", "new"):
        (folder / f".{name}.fits.part").symlink_to("b.fits")
        (folder / f"{name}.fits.part").hardlink_to(folder / "b.fits")
    (folder / "new.fits.1").hardlink_to(folder / "c.fits")
    (folder / "usage").symlink_to("a.fits")


def checksums(paths: Iterable[Path]) -> dict[Path, str]:
    files = (path for path in paths if path.is_file())
    return {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@contextmanager
def unchanged(sources: list[Path], everything: Path | None) -> Iterator[None]:
    """Let what is done here fail, but change no source, and, if given, nothing in a folder."""
    watched = [*sources, *(everything.iterdir() if everything is not None else ())]
    before = checksums(watched)
    with suppress(SwatheError):
        yield
    assert checksums(before) == before


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_no_source_is_ever_changed(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        survey(folder)
        for _ in range(data.draw(st.integers(1, 4))):
            overwrite, resume = data.draw(st.booleans()), data.draw(st.booleans())
            ids = data.draw(st.lists(NAMES, min_size=1, max_size=3))
            rows = [(name, folder / f"{data.draw(NAMES)}.fits") for name in ids]
            sources = [path for _, path in rows]
            one = folder / data.draw(PLACES).format(ids[0], folder.name)
            many = folder / data.draw(FOLDERS).format(ids[0], folder.name)
            with unchanged(sources[:1], None if overwrite else folder):
                cutout = swathe.cut(sources[0], box=(1, 1, 3, 3))
                cutout.write(one, overwrite=overwrite)
            with unchanged(sources, None if overwrite or resume else folder):
                cut_many(
                    boxes(*rows),
                    many,
                    format=data.draw(FORMATS),
                    overwrite=overwrite,
                    resume=resume,
                    progress=False,
                )


def command(*words: object) -> None:
    """Run a command in this process."""
    with (
        patch.dict(os.environ),  # --trace is for children, too
        patch.object(sys, "argv", ["swathe", *map(str, words)]),
        patch.object(sys, "stdout", io.StringIO()),
        patch.object(sys, "stderr", io.StringIO()),
        suppress(SystemExit),
    ):
        main()


class Portal:
    """One that has results of these names."""

    url = "http://portal"

    def __init__(self, names: list[str], source: Path) -> None:
        content = b"a result"
        sha256 = hashlib.sha256(content).hexdigest()
        facts: dict[str, Any] = {
            "source": str(source),
            "hdu": None,
            "box": None,
            "status": "ok",
            "reason": "",
        }
        facts |= {"bytes": len(content), "sha256": sha256}
        self.rows: list[dict[str, Any]] = [
            {"number": number, "id": name, "name": f"{name}.fits", **facts}
            for number, name in enumerate(sorted(set(names)))
        ]
        at = dict.fromkeys(("created_at", "expires_at"), "2026-01-01T00:00:00+00:00")
        empty = dict.fromkeys(("started_at", "ended_at", "predicted", "actual", "error"))
        self.job: dict[str, Any] = {
            "id": "J" * 22,
            "owner": "me",
            "name": "",
            "phase": "COMPLETED",
            "options": {},
        }
        self.job |= {**at, **empty, "rows": 1, "counts": {}, "bytes": 1, "notes": []}
        self.job |= {"parameters": []}
        self.archive = io.BytesIO()
        with zipfile.ZipFile(self.archive, "w") as archive:
            for row in self.rows:
                archive.writestr(row["name"], content)

    def get_json(self, path: str, **_: object) -> dict[str, Any]:
        return {"rows": self.rows, "next": None} if path.endswith("rows") else self.job

    @contextmanager
    def open_answer(self, path: str, *_: object, first_byte: int = 0) -> Iterator[Any]:
        content = b"a result"
        if path.endswith("manifest"):
            content = b"# %ECSV 1.0\n# ---\n# datatype:\n# - {name: id, datatype: string}\nid\na\n"
        elif "archive" in path:
            content = self.archive.getvalue()
        parts = [content[first_byte:]]
        status = 206 if first_byte else 200
        yield SimpleNamespace(status_code=status, headers={}, iter_raw=lambda _: parts)


def fetch(folder: Path, output: Path, names: list[str], overwrite: bool) -> None:
    """Fetch results of these names."""
    connection = cast(PortalConnection, Portal(names, folder / f"{names[0]}.fits"))
    RemoteJob(connection, "J" * 22).fetch(output, overwrite=overwrite)


def clear(folder: Path, output: Path, *_: object) -> None:
    """Have the blocks and the index in a folder, and remove them."""
    variables = {"SWATHE_CACHE_DIR": str(output), "SWATHE_INDEX_DIR": str(folder)}
    with patch.dict(os.environ, variables):
        swathe.cut(folder / "a.fits", box=(1, 1, 3, 3))
        command("cache", "clear")


def record(folder: Path, output: Path, names: list[str], overwrite: bool) -> None:
    """Have events recorded, as one of the ways to say where."""
    words = ["cut", folder / "a.fits", "--box", "1", "1", "3", "3", "-o", folder / "cut.fits"]
    place = f"{output}?rotate_mb=1&keep=2" if overwrite else f"memory:{output}"
    match names[0]:
        case "a":
            command("--trace", output, *words)
        case "b":
            with patch.dict(os.environ, SWATHE_TRACE=place):
                command(*words)
        case _:
            with swathe.trace.recording(place):
                swathe.trace.point("CUT_START")
    swathe.trace.stop()


def cut_by_command(folder: Path, output: Path, names: list[str], overwrite: bool) -> None:
    """Cut one region, or those of a table."""
    more = ["-o", output, *(["--overwrite"] if overwrite else [])]
    if len(names) == 1:
        command("cut", folder / f"{names[0]}.fits", "--box", "1", "1", "3", "3", *more)
    lines = [f"{name},{folder}/{name}.fits,1,1,3,3" for name in names]
    (folder / "table").write_text("\n".join(["id,file,x0,y0,width,height", *lines]))
    command("cut", "--targets", folder / "table", "--quiet", *more)


def tell(folder: Path, output: Path, names: list[str], overwrite: bool) -> None:
    """Write a trace in another form, and make ready for what an experiment finds."""
    run, more = folder / "run.ulm", ["--overwrite"] if overwrite else []
    if not run.exists():
        with swathe.trace.recording(run):
            swathe.trace.point("CUT_START")
    for form in ("--chrome", "--otlp"):
        command("trace", "export", run, form, output, *more)
    for option in ("-o", "--plot"):
        command("trace", "view", run, option, output, *more)
    ready(output, "single", overwrite=overwrite)


def work(folder: Path, output: Path, names: list[str], overwrite: bool) -> None:
    """Have a job done whose results are in a folder of the sources, or linked into it."""
    table = boxes(*[(name, folder / f"{name}.fits") for name in names])
    with (
        Catalog.open(f"sqlite:///{folder}/catalog") as catalog,
        Jobs(catalog, output, limits=Limits()) as jobs,
        running(jobs),
    ):
        job = ended(jobs, jobs.submit(table, Options(), "me"))
        jobs.delete(job.id)


def watched(
    folder: Path, act: Callable[..., None], names: list[str], overwrite: bool
) -> list[Path]:
    """Give what must stay: all images, unless files that are not read may be replaced."""
    images = [folder / f"{name}.fits" for name in "abc"]
    if not overwrite or act in (clear, record, work):
        return images
    return [folder / f"{name}.fits" for name in names] if act is cut_by_command else []


@pytest.mark.more
@pytest.mark.parametrize(
    ("act", "count"),
    [(fetch, 50), (clear, 15), (record, 15), (cut_by_command, 20), (tell, 5), (work, 3)],
)
def test_no_image_is_ever_changed(act: Callable[..., None], count: int) -> None:
    @settings(max_examples=examples(count), deadline=None, suppress_health_check=list(HealthCheck))
    @given(data=st.data())
    def run(data: st.DataObject) -> None:
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made)
            survey(folder)
            names = data.draw(st.lists(NAMES, min_size=1, max_size=3))
            place = data.draw(st.one_of(PLACES, FOLDERS)).format(names[0], folder.name)
            overwrite = data.draw(st.booleans())
            with unchanged(watched(folder, act, names, overwrite), None):
                act(folder, folder / place, names, overwrite)

    run()


def test_the_command_changes_no_source(
    image: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = image.read_bytes()
    (tmp_path / "link.fits").symlink_to("a.fits")
    (tmp_path / "t.csv").write_text("id,file,x0,y0,width,height\na,a.fits,1,1,3,3\n")
    single = ["cut", "a.fits", "--box", "0", "0", "5", "5", "-o"]
    many = ["cut", "--targets", "t.csv", "-o"]
    for words in ([*single, "a.fits"], [*single, "link.fits"], [*many, "a.fits"], [*many, "."]):
        for more in ([], ["--overwrite"]):
            ran = command_here(*words, *more)
            assert ran.returncode == 6, ran
            assert "it is the source" in ran.stderr
            assert image.read_bytes() == before
    for name, code in (("c.fits", 0), ("c.fits", 6), ("none/c.fits", 6)):
        ran = command_here(*single, name)
        assert ran.returncode == code, ran
    assert ran.stderr == ("swathe: none/c.fits: cannot write: the folder none does not exist\n")


@pytest.mark.parametrize(
    "name",
    [
        "{fd}",
        "{dev}",
        "{cwd}/a.fits",
        "loop/loop/a.fits",
        "a.fits/",
        "a.fits/.",
        "{cwd}/../{0}/a.fits",
    ],
)
def test_no_other_spelling_of_a_source_is_written(
    name: str, image: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loop").symlink_to(".")
    before, inode = image.read_bytes(), image.stat().st_ino
    with image.open("r+b") as file:
        number = file.fileno()
        places = {"fd": f"/proc/self/fd/{number}", "dev": f"/dev/fd/{number}"}
        output = name.format(tmp_path.name, cwd="/proc/self/cwd", **places)
        for words in (("--box", 1, 1, 3, 3), ("--box", 1, 1, 3, 3, "--overwrite")):
            command("cut", image, *words, "-o", output)
        assert (image.read_bytes(), image.stat().st_ino) == (before, inode)
        table = boxes(("a", image))
        for overwrite in (False, True):
            with pytest.raises(OutputError):
                cut_many(table, output, overwrite=overwrite, progress=False)
        assert (image.read_bytes(), image.stat().st_ino) == (before, inode)
    assert {path.name for path in tmp_path.iterdir()} == {"a.fits", "loop"}


@pytest.mark.parametrize("place", ["{0}", "memory:{0}", "{0}?rotate_mb=1&keep=1"])
def test_events_are_not_written_to_an_image(place: str, image: Path) -> None:
    before = image.read_bytes()
    with pytest.raises(OutputError, match=r"a\.fits: exists and is not a trace"):
        swathe.trace.start(place.format(image))
    assert image.read_bytes() == before


@pytest.mark.parametrize("place", ["{0}", "memory:{0}"])
def test_an_image_whose_header_names_an_event_is_no_trace(place: str, image: Path) -> None:
    with fits.open(image, mode="update") as hdus:
        hdus[0].header["HISTORY"] = "DATE=20261121013038.0 NL.EVNT=CUT_START"
    before = image.read_bytes()
    with pytest.raises(OutputError, match=r"a\.fits: exists and is not a trace"):
        swathe.trace.start(place.format(image))
    assert image.read_bytes() == before


def test_a_trace_that_rotates_replaces_no_image(image: Path, tmp_path: Path) -> None:
    old = image.rename(tmp_path / "run[1].ulm.2")
    with pytest.raises(OutputError, match=r"run\[1\]\.ulm\.2: exists and is not a trace"):
        swathe.trace.start(f"{tmp_path}/run[1].ulm?rotate_mb=1&keep=3")
    assert fits.getdata(old).shape == (20, 20)


@pytest.mark.parametrize("kind", ["", "memory:"])
def test_events_are_added_to_a_trace(kind: str, tmp_path: Path) -> None:
    run = tmp_path / "run.ulm"
    for count in (1, 2):
        swathe.trace.start(f"{kind}{run}")
        swathe.trace.point("CUT_START")
        swathe.trace.stop()
        assert run.read_text().count("NL.EVNT=CUT_START") == count


@pytest.mark.parametrize("name", ["targets.csv", "sample.json", "frame-000001.fit"])
def test_a_sample_replaces_nothing_else(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"mine")
    with pytest.raises(FileExistsError):
        make_sample(tmp_path, frames=1, targets=2)
    assert (tmp_path / name).read_bytes() == b"mine"


@pytest.mark.parametrize("append", [False, True])
@pytest.mark.parametrize("link", [Path.symlink_to, Path.hardlink_to])
def test_an_unfinished_file_is_not_what_a_link_leads_to(
    link: Callable[[Path, Path], None], append: bool, image: Path, tmp_path: Path
) -> None:
    before = image.read_bytes()
    link(tmp_path / ".o.part", image)
    with open_part_file(tmp_path / ".o.part", append=append) as file:
        file.write(b"new")
    assert (image.read_bytes(), (tmp_path / ".o.part").read_bytes()) == (before, b"new")


def test_an_unfinished_file_is_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / ".o.part"
    for append, content in ((True, b"one"), (True, b"oneone"), (False, b"one")):
        with open_part_file(path, append=append) as file:
            file.write(b"one")
        assert path.read_bytes() == content


@pytest.fixture(scope="module")
def whole_sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sample of one frame and two targets; tests copy it."""
    return new_sample(tmp_path_factory.mktemp("sample"), 1, 2).parent


@pytest.mark.more
def test_a_sample_of_another_seed_is_replaced_only_if_asked(
    tmp_path: Path, whole_sample: Path
) -> None:
    shutil.copytree(whole_sample, tmp_path, dirs_exist_ok=True)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    for seed, targets in ((2, 2), (1, 3)):
        with pytest.raises(OutputExistsError, match="exists already"):
            make_sample(tmp_path, frames=1, seed=seed, targets=targets)
        assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    make_sample(tmp_path, frames=1, targets=2, seed=2, overwrite=True)
    assert (tmp_path / "frame-000001.fit").read_bytes() != before[tmp_path / "frame-000001.fit"]


@pytest.mark.parametrize("content", [b"mine", "a frame with another name"])
def test_a_sample_removes_only_its_own_frames(
    content: Any, tmp_path: Path, whole_sample: Path
) -> None:
    shutil.copytree(whole_sample, tmp_path, dirs_exist_ok=True)
    mine = [tmp_path / f"frame-000007.{kind}" for kind in KINDS]
    for path in mine:
        if content == b"mine":
            path.write_bytes(content)
        else:
            shutil.copy(path.with_name(path.name.replace("7", "1")), path)
    before = checksums(mine)
    make_sample(tmp_path, frames=1, targets=2, seed=2, overwrite=True)
    assert checksums(mine) == before
    mine[0].unlink()
    with pytest.raises(OutputExistsError, match=r"frame-000007\.fit\.gz: expected a frame"):
        make_sample(tmp_path, frames=7, targets=2, seed=2, overwrite=True)
    assert checksums(mine) == {path: before[path] for path in mine[1:]}


@pytest.mark.parametrize(
    "kind",
    [kind if kind == "fit.fz" else pytest.param(kind, marks=pytest.mark.more) for kind in KINDS],
)
def test_a_sample_finishes_a_frame_of_its_own(
    kind: str, tmp_path: Path, whole_sample: Path
) -> None:
    shutil.copytree(whole_sample, tmp_path, dirs_exist_ok=True)
    before = checksums(tmp_path.iterdir())
    (tmp_path / f"frame-000001.{kind}").unlink()
    make_sample(tmp_path, frames=1, targets=2)
    assert checksums(tmp_path.iterdir()) == before
