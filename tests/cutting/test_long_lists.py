"""Lists longer than a piece: what is read, named, kept and said is as for a short list."""

from __future__ import annotations

import gzip
import signal
import subprocess
import sys
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from astropy.io import fits
from astropy.table import Table, vstack
from pyarrow import parquet

import swathe
from swathe.core.errors import OutputError, TargetsError
from swathe.costs import predict_list
from swathe.files import file
from swathe.files.manifest_file import LongManifest, ManifestFile, read_rows
from swathe.files.targets import pieces
from swathe.files.targets.pieces import read_pieces
from swathe.files.targets.result_names import PieceNames, TextSet, unique_names
from tests.support.fits_frames import fits_bytes, image_of, noise, results

PIECE = 7
COUNT = 40


@pytest.fixture(autouse=True)
def short_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "PIECE_ROWS", PIECE)


@pytest.fixture
def frames(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / f"f{number}.fits" for number in range(14)]
    for number, path in enumerate(paths):
        path.write_bytes(fits_bytes(fits.PrimaryHDU(noise(number, (60, 80)))))
    return paths


def boxes(frames: list[Path], *, is_sorted: bool = True) -> dict[str, list[Any]]:
    numbers = [n * 14 // COUNT if is_sorted else n % 14 for n in range(COUNT)]
    return {
        "id": [f"t{n}" for n in range(COUNT)],
        "file": [str(frames[number]) for number in numbers],
        "x0": [n % 50 for n in range(COUNT)],
        "y0": [n % 40 for n in range(COUNT)],
        "width": [5] * COUNT,
        "height": [4] * COUNT,
    }


def rows_of(columns: dict[str, list[Any]]) -> Iterator[dict[str, Any]]:
    for values in zip(*columns.values(), strict=True):
        yield dict(zip(columns, values, strict=True))


def cut(given: Any, output: Path | str, **options: Any) -> Any:
    return swathe.cut_many(given, output, progress=False, **options)


def whole(manifest: LongManifest) -> Table:
    return vstack(list(manifest.tables(9)), metadata_conflicts="silent")


def write_parquet(columns: dict[str, list[Any]], path: Path) -> None:
    parquet.write_table(pa.table(columns), path)


def write_fits(columns: dict[str, list[Any]], path: Path) -> None:
    Table(columns).write(path)


def write_csv(columns: dict[str, list[Any]], path: Path) -> None:
    Table(columns).write(path, format="ascii.csv")


def write_csv_gz(columns: dict[str, list[Any]], path: Path) -> None:
    write_csv(columns, path.with_name("plain.csv"))
    path.write_bytes(gzip.compress(path.with_name("plain.csv").read_bytes()))


def write_ecsv(columns: dict[str, list[Any]], path: Path) -> None:
    Table(columns).write(path, format="ascii.ecsv")


def write_vot(columns: dict[str, list[Any]], path: Path) -> None:
    Table(columns).write(path, format="votable")


def write_tsv(columns: dict[str, list[Any]], path: Path) -> None:
    rows = ["\t".join(map(str, values)) for values in zip(*columns.values(), strict=True)]
    path.write_text("\n".join(["# a list", "\t".join(columns), *rows]) + "\n")


WRITERS = {
    "a.parquet": write_parquet,
    "a.fits": write_fits,
    "a.csv": write_csv,
    "a.csv.gz": write_csv_gz,
    "a.ecsv": write_ecsv,
    "a.vot": write_vot,
    "a.tsv": write_tsv,
}


@pytest.mark.parametrize("name", WRITERS)
def test_file_in_pieces_gives_the_same_targets_as_the_whole(
    name: str, frames: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = boxes(frames)
    columns["id"][3] = 'say "a, b"'
    WRITERS[name](columns, tmp_path / name)
    read = list(read_pieces(tmp_path / name))
    assert [piece.first for piece in read] == list(range(0, COUNT, PIECE))
    assert [piece.is_last for piece in read] == [False] * 5 + [True]
    monkeypatch.setattr(pieces, "PIECE_ROWS", 1000)
    (alone,) = read_pieces(tmp_path / name)
    for column in columns:
        parts = [each for piece in read for each in piece.table.table[column].tolist()]
        assert parts == alone.table.table[column].tolist()
    assert {piece.table.folder for piece in read} == {alone.table.folder}


def test_ids_of_another_type_in_a_later_piece_are_refused(
    frames: list[Path], tmp_path: Path
) -> None:
    """Else `008` would be 8 in one piece, and text in the other."""
    table = tmp_path / "targets.csv"
    ids = [f"{n:03}" for n in range(8)] + ["x1", "x2"]
    lines = [f"{each},{frames[0]},0,0,5,4" for each in ids]
    table.write_text("\n".join(["id,file,x0,y0,width,height", *lines]))
    with pytest.raises(TargetsError, match=r"id: expected int64 .* found text in lines 9 to"):
        cut(table, tmp_path / "out.zip")


def test_cell_of_several_lines_is_not_divided(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    rows = "".join(f'"a\nb {n}",f,{n},1,2,2\n' for n in range(20))
    path.write_text("id,file,x0,y0,width,height\n" + rows)
    ids = [each for piece in read_pieces(path) for each in piece.table.table["id"].tolist()]
    assert ids == [f"a\nb {n}" for n in range(20)]


def test_quotes_within_cells_open_none(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    rows = "".join(f'n{n} 5" disk,f,{n},1,2,2\n' for n in range(20))
    path.write_text("id,file,x0,y0,width,height\n" + rows)
    assert [len(piece.table.table) for piece in read_pieces(path)] == [7, 7, 6]


def test_quote_that_does_not_end_is_an_error_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    lines = [f"n{n},f,{n},1,2,2\n" for n in range(20_000)]
    lines[9] = '"n9,f,9,1,2,2\n'
    path.write_text("id,file,x0,y0,width,height\n" + "".join(lines))
    with pytest.raises(TargetsError, match=r"a.csv: line 11: expected the end of a cell"):
        list(read_pieces(path))


def test_integer_ids_stay_integers_if_one_is_missing(frames: list[Path], tmp_path: Path) -> None:
    ids = pa.array([None if n == 3 else 2**53 + n for n in range(COUNT)], pa.int64())
    columns = {**boxes(frames), "id": ids}
    parquet.write_table(pa.table(columns), tmp_path / "a.parquet")
    manifest = cut(tmp_path / "a.parquet", tmp_path / "out")
    expected = ["3" if n == 3 else f"{2**53 + n}" for n in range(COUNT)]
    assert whole(manifest)["id"].tolist() == expected


@pytest.mark.parametrize("name", ["id", "file"])
def test_text_that_no_manifest_can_have_is_refused(
    name: str, frames: list[Path], tmp_path: Path
) -> None:
    columns = boxes(frames)
    columns[name][2] = "x" * 131_073
    with pytest.raises(TargetsError, match=f"{name}: expected up to 100,000 .* found 131,0|too lo"):
        cut(columns, tmp_path / "out.zip")


def test_lines_without_names_keep_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("# comment\n" + "".join(f'f.fits {n} 2 30"\n\n' for n in range(20)))
    ids = [each for piece in read_pieces(path) for each in piece.table.table["id"].tolist()]
    assert ids == [str(2 + 2 * n) for n in range(20)]


@pytest.mark.parametrize("output", ["folder", "out.zip", "out.tar"])
@pytest.mark.parametrize("is_sorted", [True, False])
def test_long_list_gives_what_a_short_list_gives(
    output: str,
    is_sorted: bool,
    frames: list[Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    columns = boxes(frames, is_sorted=is_sorted)
    columns["x0"][5] = 500  # outside
    columns["file"][20] = str(tmp_path / "none.fits")
    columns["width"][30] = 0
    manifest = cut(columns, tmp_path / "long" / output)
    monkeypatch.setattr(pieces, "PIECE_ROWS", 1000)
    short = cut(columns, tmp_path / "short" / output)
    assert isinstance(manifest, LongManifest)
    assert len(manifest) == COUNT
    table = whole(manifest)
    assert [row["id"] for row in manifest] == columns["id"]
    with pytest.raises(TypeError, match=r"expected use of tables\(\), found \['status'\]"):
        manifest["status"]
    with pytest.raises(AttributeError, match=r"expected use of tables\(\), found \.colnames"):
        _ = manifest.colnames
    for name in short.colnames:
        assert table[name].tolist() == short[name].tolist()
    kept = ("ok", "no-overlap", "missing", "error", "mode", "operation", "done_before")
    assert {name: manifest.meta[name] for name in kept} == {name: short.meta[name] for name in kept}
    assert manifest.failed["id"].tolist() == ["t5", "t20", "t30"]
    notes = manifest.meta["notes"]
    assert any("was read again" in note for note in notes) == (not is_sorted)
    ours, theirs = (results(tmp_path / which / output) for which in ("long", "short"))
    ours.pop("manifest.ecsv", None), theirs.pop("manifest.ecsv", None)
    assert ours == theirs
    assert manifest.path is not None
    again = Table.read(manifest.path, format="ascii.ecsv", fill_values=[])
    assert again["id"].tolist() == columns["id"]
    assert again.meta["ok"] == COUNT - 3


def test_archive_holds_the_manifest_and_leaves_no_hidden_file(
    frames: list[Path], tmp_path: Path
) -> None:
    folder = tmp_path / "made"
    for name in ("o.zip", "o.tar"):
        manifest = cut(boxes(frames), folder / name)
        member = manifest.path.read_bytes()
        if name == "o.zip":
            with zipfile.ZipFile(folder / name) as archive:
                assert archive.testzip() is None
                assert archive.read("manifest.ecsv") == member
        else:
            with tarfile.open(folder / name) as tar:
                file = tar.extractfile("manifest.ecsv")
                assert file is not None
                assert file.read() == member
    assert not [path.name for path in folder.iterdir() if path.name.startswith(".")]


def test_null_counts_and_writes_nothing(
    frames: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = set(tmp_path.rglob("*"))
    manifest = cut(boxes(frames), "null:")
    assert manifest.meta["ok"] == COUNT
    assert manifest.path is None
    with pytest.raises(OutputError, match="null: only counts"):
        next(manifest.tables())
    monkeypatch.setattr(pieces, "PIECE_ROWS", 1000)
    table = cut(boxes(frames), "null:")
    assert set(table["status"]) == {"ok"}
    assert all(len(digest) == 64 for digest in table["sha256"])
    assert set(tmp_path.rglob("*")) == before
    with pytest.raises(OutputError, match="results to resume"):
        cut(boxes(frames), "null:", resume=True)
    with pytest.raises(OutputError, match="expected operation cut and format fits"):
        cut(boxes(frames), "null:", format="npy")


def test_iterators_of_dicts_tuples_and_lines(frames: list[Path], tmp_path: Path) -> None:
    columns = boxes(frames)
    expected = results(tmp_path / "a") if cut(columns, tmp_path / "a") else {}
    assert cut(rows_of(columns), tmp_path / "b").meta["ok"] == COUNT
    centers = zip(columns["file"], columns["x0"], columns["y0"], strict=True)
    tuples = [(file, x + 2, y + 2, 4, 5) for file, x, y in centers]
    assert cut(iter(tuples), tmp_path / "c").meta["ok"] == COUNT
    lines = (f"{file} {x} {y} {height} {width}" for file, x, y, height, width in tuples)
    assert cut(lines, tmp_path / "d").meta["ok"] == COUNT
    b = results(tmp_path / "b")
    assert {name for name in b if name != "manifest.ecsv"} == {f"t{n}.fits" for n in range(COUNT)}
    assert b["t9.fits"] == expected["t9.fits"] == results(tmp_path / "c")["9.fits"]
    # Lines are numbered from 1.
    assert (image_of(results(tmp_path / "d")["10.fits"]) == image_of(b["t9.fits"])).all()
    with pytest.raises(TargetsError, match="target 1 of the list: expected"):
        cut(iter([tuples[0], (1, 2)]), tmp_path / "e")
    with pytest.raises(TargetsError, match="found column names"):
        cut(iter(["file,x,y,height,width"]), tmp_path / "e")
    with pytest.raises(TargetsError, match="target 1 of the list: expected"):
        cut(iter([{"file": "a"}, "b"]), tmp_path / "e")


@pytest.mark.parametrize("stop", [0, 3, PIECE, 2 * PIECE + 3, 3 * PIECE])
@pytest.mark.parametrize("output", ["folder", "out.zip"])
def test_iterator_that_raises_keeps_what_was_before(
    output: str, stop: int, frames: list[Path], tmp_path: Path
) -> None:
    def targets() -> Iterator[dict[str, Any]]:
        for number, row in enumerate(rows_of(boxes(frames))):
            if number == stop:
                raise RuntimeError("the database went away")
            yield row

    with pytest.raises(
        TargetsError, match=f"target {stop} of the list: .*RuntimeError: the database"
    ):
        cut(targets(), tmp_path / "made" / output)
    if not stop:
        assert not (tmp_path / "made").exists()
        return
    made = results(tmp_path / "made" / output)
    names = {f"t{n}.fits" for n in range(stop)}
    assert {name for name in made if name.endswith(".fits")} == names
    again = cut(rows_of(boxes(frames)), tmp_path / "made" / output, resume=True)
    assert again.meta["done_before"] == stop
    assert again.meta["ok"] == COUNT
    assert whole(again)["id"].tolist() == [f"t{n}" for n in range(COUNT)]


@pytest.mark.parametrize("output", ["folder", "out.zip", "out.tar"])
def test_interrupted_run_is_resumed_and_loses_nothing(
    output: str, frames: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "made" / output
    saved = ManifestFile.end_piece
    stop_after = [3]

    def interrupt(self: ManifestFile, *args: Any, **options: Any) -> None:
        saved(self, *args, **options)
        if self.pieces == stop_after[0]:
            raise KeyboardInterrupt

    assert threading.current_thread() is threading.main_thread()
    assert callable(signal.getsignal(signal.SIGINT))
    monkeypatch.setattr(ManifestFile, "end_piece", interrupt)
    with pytest.raises(KeyboardInterrupt, match="in the part of the list that was read"):
        cut(boxes(frames), path)
    first = results(path)
    # The second run comes less far than the first; what that one did is not lost.
    stop_after[0] = 1
    with pytest.raises(KeyboardInterrupt):
        cut(boxes(frames), path, resume=True)
    stop_after[0] = 0
    manifest = cut(boxes(frames), path, resume=True)
    done = len([name for name in first if name.endswith(".fits")])
    assert done > PIECE
    assert manifest.meta["done_before"] == done
    made = results(path)
    assert {name for name in made if name.endswith(".fits")} == {f"t{n}.fits" for n in range(COUNT)}
    assert all(made[name] == first[name] for name in first if name.endswith(".fits"))
    assert whole(manifest)["status"].tolist() == ["ok"] * COUNT
    assert not [each.name for each in path.parent.rglob(".*")]
    assert cut(boxes(frames), path, resume=True).meta["done_before"] == COUNT


@pytest.mark.parametrize("name", ["a.parquet", "a.csv", "iterator"])
@pytest.mark.parametrize("is_sorted", [True, False])
def test_prediction_of_a_long_list_is_that_of_its_pieces(
    name: str,
    is_sorted: bool,
    frames: list[Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    columns = boxes(frames, is_sorted=is_sorted)
    columns["width"][9] = 0
    given: Any = rows_of(columns)
    if name in WRITERS:
        given = tmp_path / name
        WRITERS[name](columns, given)
    predicted = swathe.predict(given)
    (cost,) = predicted.per_store.values()
    assert (cost.targets, cost.unreadable) == (COUNT - 1, 0)
    assert len(predicted.faults) == 1 and "t9" in predicted.faults[0]
    assert predicted.median_s - predicted.overhead_s == pytest.approx(cost.median_s)
    assert cut(columns, tmp_path / "out").meta["predicted_s"] > cost.median_s / 2
    monkeypatch.setattr(pieces, "PIECE_ROWS", 1000)
    whole_list = swathe.predict(columns)
    (alone,) = whole_list.per_store.values()
    assert alone.objects == 14
    assert cost.objects == 14 if is_sorted else cost.objects > 30
    assert cost.compute_s == pytest.approx(alone.compute_s, rel=0.2 if is_sorted else 1.0)


def test_prediction_inspects_few_images_of_a_long_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    header = fits.Header(cards_of_sky())
    image = fits_bytes(fits.PrimaryHDU(noise(0, (60, 80)), header))
    files = [tmp_path / f"f{number}.fits" for number in range(30)]
    for path in files:
        path.write_bytes(image)
    opened: list[str] = []
    sky_of = file.sky_of

    def counted(file: str, hdu: Any) -> Any:
        opened.append(file)
        return sky_of(file, hdu)

    monkeypatch.setattr(file, "sky_of", counted)
    monkeypatch.setattr(predict_list, "MOST_OBJECTS", 3)
    monkeypatch.setattr(predict_list, "FURTHER_OBJECTS", 1)
    count = len(files)
    given = {"file": list(map(str, files)), "ra": [10.0] * count, "dec": [20.0] * count}
    predicted = swathe.predict({**given, "size_deg": [0.004] * count})
    assert len(opened) == 3 + 4
    (cost,) = predicted.per_store.values()
    assert (cost.objects, cost.targets) == (count, count)
    monkeypatch.setattr(pieces, "PIECE_ROWS", 1000)
    monkeypatch.setattr(predict_list, "MOST_OBJECTS", 1000)
    alone = swathe.predict({**given, "size_deg": [0.004] * count})
    assert len(opened) == 3 + 4 + count
    assert cost.compute_s == pytest.approx(alone.compute_s, rel=0.05)


def cards_of_sky() -> dict[str, Any]:
    place = {"CTYPE1": "RA---TAN", "CTYPE2": "DEC--TAN", "CRVAL1": 10.0, "CRVAL2": 20.0}
    return place | {"CRPIX1": 40.0, "CRPIX2": 30.0, "CDELT1": -0.0002, "CDELT2": 0.0002}


@pytest.mark.parametrize("output", ["folder", "out.zip"])
def test_interrupted_iterator_leaves_a_row_for_each_target_that_was_planned(
    output: str, frames: list[Path], tmp_path: Path
) -> None:
    def targets() -> Iterator[dict[str, Any]]:
        for number, row in enumerate(rows_of(boxes(frames))):
            if number == 2 * PIECE + 3:
                raise KeyboardInterrupt
            yield row

    path = tmp_path / "made" / output
    with pytest.raises(KeyboardInterrupt):
        cut(targets(), path)
    beside = path / "manifest.ecsv" if output == "folder" else path.parent / "out.manifest.ecsv"
    table = Table.read(beside, format="ascii.ecsv", fill_values=[])
    # The last file of the second part was to be cut with the third part.
    assert table["id"].tolist() == [f"t{n}" for n in range(2 * PIECE)]
    undone = table[table["status"] != "ok"]
    assert len(undone) > 0 and set(undone["reason"]) == {"interrupted"}
    assert table.meta["error"] == len(undone) and table.meta["ok"] == 2 * PIECE - len(undone)
    again = cut(rows_of(boxes(frames)), path, resume=True)
    assert again.meta["done_before"] == 2 * PIECE - len(undone)
    assert again.meta["ok"] == COUNT


KILLED = """
import os, sys

import swathe
from swathe.cutting import cut_run
from swathe.files.manifest_columns import Manifest
from swathe.files.targets import pieces

pieces.PIECE_ROWS, cut_run.CHECKPOINT_S, cut_run.MOST_TOGETHER = 7, 0.0, 1
table, output, last = sys.argv[1], sys.argv[2], int(sys.argv[3])
rows, saves = Manifest.rows, 0

def killed_rows(self):
    global saves
    for part in rows(self):
        # Some results of a later piece are done; half of its rows are in the file.
        saves += 1
        if saves == last:
            yield part[: len(part) // 2]
            os._exit(9)
        yield part

Manifest.rows = killed_rows
swathe.cut_many(table, output, progress=False, threads=1)
"""


@pytest.mark.parametrize("last", [2, 5, 6, 9])
@pytest.mark.parametrize("output", ["folder", "out.zip"])
def test_run_killed_while_it_saves_is_resumed(
    output: str, last: int, frames: list[Path], tmp_path: Path
) -> None:
    columns = boxes(frames)
    write_parquet(columns, tmp_path / "a.parquet")
    path = tmp_path / "made" / output
    arguments = [str(tmp_path / "a.parquet"), str(path), str(last)]
    done = subprocess.run([sys.executable, "-c", KILLED, *arguments], check=False, timeout=60)
    assert done.returncode == 9
    manifest = cut(tmp_path / "a.parquet", path, resume=True)
    assert manifest.meta["ok"] == COUNT
    assert whole(manifest)["id"].tolist() == columns["id"]
    made = results(path)
    assert {name for name in made if name.endswith(".fits")} == {f"t{n}.fits" for n in range(COUNT)}
    assert not [each.name for each in path.parent.rglob(".*.piece.part")]


@pytest.mark.parametrize("output", ["folder", "out.zip"])
def test_run_with_repeated_ids_is_resumed(output: str, frames: list[Path], tmp_path: Path) -> None:
    columns = boxes(frames)
    columns["id"] = [f"t{n % 20}" for n in range(COUNT)]
    columns["file"][9] = columns["file"][30] = str(tmp_path / "gone.fits")
    first = whole(cut(columns, tmp_path / output))
    again = cut(columns, tmp_path / output, resume=True)
    assert again.meta["done_before"] == COUNT - 2
    assert whole(again)["path"].tolist() == first["path"].tolist()
    assert len({*results(tmp_path / output)} - {"manifest.ecsv"}) == COUNT - 2


@pytest.mark.parametrize("output", ["out.zip", "out.tar"])
def test_archive_gets_no_second_result_of_a_name_when_resumed(
    output: str, frames: list[Path], tmp_path: Path
) -> None:
    columns = boxes(frames)
    cut(columns, tmp_path / output)
    made = (tmp_path / output).read_bytes()
    other = {**columns, "file": [*columns["file"][:5], str(frames[13]), *columns["file"][6:]]}
    with pytest.raises(OutputError, match=r"found another for t5\.fits, which the archive holds"):
        cut(other, tmp_path / output, resume=True)
    assert (tmp_path / output).read_bytes() == made
    # Also after some parts were kept.
    other["file"] = [*columns["file"][:35], str(frames[0]), *columns["file"][36:]]
    with pytest.raises(OutputError, match=r"found another for t35\.fits"):
        cut(other, tmp_path / output, resume=True)
    assert cut(columns, tmp_path / output, resume=True).meta["done_before"] == COUNT
    assert {*results(tmp_path / output)} - {"manifest.ecsv"} == {f"t{n}.fits" for n in range(COUNT)}


@pytest.mark.parametrize("output", ["folder", "out.zip", "out.tar"])
def test_shorter_list_is_resumed_again_and_again(
    output: str, frames: list[Path], tmp_path: Path
) -> None:
    columns = boxes(frames)
    cut(columns, tmp_path / output)
    shorter = {name: [*column[:3], *column[4:]] for name, column in columns.items()}
    for _ in range(3):
        manifest = cut(shorter, tmp_path / output, resume=True)
        assert manifest.meta["done_before"] == COUNT - 1
        assert len(whole(manifest)) == COUNT - 1
    assert "t3.fits" in results(tmp_path / output)
    if output == "folder":
        return
    with pytest.raises(OutputError, match=r"found one of a target that was taken off the list"):
        cut(columns, tmp_path / output, resume=True)
    assert cut(shorter, tmp_path / output, resume=True).meta["done_before"] == COUNT - 1


def test_row_that_was_not_written_to_its_end_is_left_out(
    frames: list[Path], tmp_path: Path
) -> None:
    cut(boxes(frames), tmp_path / "a.zip")
    path = tmp_path / "a.manifest.ecsv"
    content = path.read_bytes()
    assert len(list(read_rows(path))) == COUNT
    for missing in (1, 40, 62, 100):
        path.write_bytes(content[:-missing])
        assert len(list(read_rows(path))) == COUNT - 1


def test_rows_with_other_columns_are_an_error(frames: list[Path], tmp_path: Path) -> None:
    cut(boxes(frames), tmp_path / "a.zip")
    path = tmp_path / "a.manifest.ecsv"
    head, rows = path.read_text().split("\nid,status,", 1)
    older = [line.rpartition(",")[0] for line in f"id,status,{rows}".splitlines()]
    path.write_text("\n".join([head, *older, ""]))
    with pytest.raises(OutputError, match=r"expected the columns id, .*, sha256, found id, "):
        list(read_rows(path))
    lines = f"{head}\nid,status,{rows}".splitlines()
    for cells, found in ((",".join("abc"), "fewer"), (lines[-1] + ",more", "more")):
        path.write_text("\n".join([*lines[:-2], cells, lines[-1], ""]))
        with pytest.raises(OutputError, match=rf"row {COUNT - 1}: expected 8 cells, found {found}"):
            list(read_rows(path))


def test_pieces_of_empty_lines_are_left_out(frames: list[Path], tmp_path: Path) -> None:
    path, row = tmp_path / "a.csv", f",{frames[0]},1,1,2,2\n"
    for before in (0, 3):
        lines = [f"a{n}{row}" for n in range(before)] + ["\n"] * 20 + [f"b{row}"] * 3
        path.write_text("id,file,x0,y0,width,height\n" + "".join(lines))
        assert cut(path, tmp_path / f"{before}").meta["ok"] == before + 3


def test_what_needs_a_whole_list_refuses_a_long_one(frames: list[Path], tmp_path: Path) -> None:
    columns = boxes(frames)
    with pytest.raises(OutputError, match=r"targets for a FITS file, found more"):
        cut(columns, tmp_path / "a.fits")
    (tmp_path / "there").mkdir()
    with pytest.raises(OutputError, match="expected a new folder"):
        cut(columns, tmp_path / "there", overwrite=True)
    sky = {"file": columns["file"], "ra": [1.0] * COUNT, "dec": [2.0] * COUNT}
    with pytest.raises(TargetsError, match="a stack or rgb: expected a list of up to"):
        cut({**sky, "size_deg": [0.1] * COUNT}, tmp_path / "s", operation="stack")
    assert not (tmp_path / "s").exists()


def test_names_are_unique_over_pieces() -> None:
    ids = ["a", "b", "A", "a", "c d", "c_d", "a-2", "a", "b", "x"] * 3
    names = PieceNames()
    made = [name for first in range(0, 30, 4) for name in names(ids[first : first + 4])]
    assert len({name.lower() for name in made}) == 30
    assert made[:2] == unique_names(ids[:2])
    again = PieceNames()
    assert made == [name for first in range(0, 30, 4) for name in again(ids[first : first + 4])]


def test_set_of_texts_knows_what_was_added() -> None:
    known = TextSet()
    assert known.contains(["a"]).tolist() == [False]
    for first in range(0, 3000, 100):
        known.add(map(str, range(first, first + 100)))
    assert known.contains(["0", "2999", "3000", "x"]).tolist() == [True, True, False, False]
