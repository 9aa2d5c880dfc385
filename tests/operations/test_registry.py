"""A new operation is one module: commands, jobs, pages and the REST interface have it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from astropy.io import fits

import swathe
from swathe.catalog import Catalog
from swathe.core.errors import JobError, OptionError
from swathe.jobs import Jobs, Limits, Options
from swathe.operations import kinds
from swathe.operations.operation import (
    CombiningOperation,
    ConvertingOperation,
    GroupingOperation,
    ProgramOperation,
    ReducingOperation,
)
from swathe.operations.registry import ResultOptions, formats, operations, own_options
from tests.support.job_runner import ended, running

DIFFERENCE = '''
"""Subtract the second image of each group from the first."""

import numpy as np
from astropy.io import fits

from swathe.core.errors import RegionError
from swathe.operations.operation import CombiningOperation, OperationOption, ResultFormat


class DifferenceOperation(CombiningOperation):
    """The first image of a group less the second."""

    name = "difference"
    title = "Subtract two images"
    formats = (
        ResultFormat("fits", "FITS", "a difference", ".fits", "application/fits", 0.1, 0.03),
    )
    options = (
        OperationOption("sign", "Sign", "Sign", (("plus", "Plus"), ("minus", "Minus")), "plus"),
    )

    def choose_images(self, image_bands, bands, distance):
        """Use the first two, the second first."""
        return [1, 0] if len(image_bands) == 3 else list(range(len(image_bands))), ""

    def make(self, path, grid, images, options, stopped):
        if len(images) != 2:
            raise RegionError(f"a difference: expected two images, found {len(images)}")
        first, second = (np.load(each.pixels) for each in images)
        sign = 1 if options["sign"] == "plus" else -1
        fits.writeto(path, sign * (first - second), grid.wcs().to_header())
        return True


OPERATION = DifferenceOperation()
'''


INVERSE = '''
"""Turn the sign of each cutout."""

from swathe.operations.operation import ConvertingOperation, ResultFormat


class InverseOperation(ConvertingOperation):
    """Text of the pixels, times -1."""

    name = "inverse"
    title = "Turn the sign"
    formats = (ResultFormat("txt", "Text", "a text", ".txt", "text/plain", 0.1, 1e-3),)

    def convert(self, cutout, name, options, should_stop):
        return " ".join(map(str, -cutout.data.ravel())).encode()


OPERATION = InverseOperation()
'''


@pytest.fixture
def difference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Put a fourth operation beside the others, for the time of a test."""
    with one_more("difference", DIFFERENCE, tmp_path / "kinds", monkeypatch):
        yield


@pytest.fixture
def inverse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The same, with an operation that converts, into a format of its own."""
    with one_more("inverse", INVERSE, tmp_path / "kinds", monkeypatch):
        yield


@contextmanager
def one_more(
    name: str, module: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    folder.mkdir()
    (folder / f"{name}.py").write_text(module)
    monkeypatch.setattr(kinds, "__path__", [*kinds.__path__, str(folder)])
    operations.cache_clear()
    yield
    operations.cache_clear()
    sys.modules.pop(f"{kinds.__name__}.{name}", None)


def images_of_the_sky(folder: Path) -> list[Path]:
    """Write two images of one place, with 7 and 4 in each pixel."""
    folder.mkdir()
    header = fits.Header()
    header.update(CTYPE1="RA---TAN", CTYPE2="DEC--TAN", CRVAL1=10.0, CRVAL2=-1.0)
    header.update(CRPIX1=32, CRPIX2=32, CDELT1=-1e-4, CDELT2=1e-4)
    paths = [folder / "a.fits", folder / "b.fits"]
    for path, value in zip(paths, (7, 4), strict=True):
        fits.writeto(path, np.full((64, 64), value, np.float32), header)
    return paths


def table_of(files: list[str]) -> dict[str, list[object]]:
    return {"file": [*files], "ra": [10.0, 10.0], "dec": [-1.0, -1.0], "size_deg": [1e-3, 1e-3]}


@pytest.mark.usefixtures("difference")
def test_a_new_operation_cuts_many(tmp_path: Path) -> None:
    paths = images_of_the_sky(tmp_path / "survey")
    found = swathe.cut_many(
        table_of([str(path) for path in paths]),
        tmp_path / "o",
        operation="difference",
        sign="minus",
        progress=False,
    )
    assert found["id"].tolist()[-1] == "difference"
    assert found["status"].tolist() == ["ok"] * 3
    data = fits.getdata(tmp_path / "o" / "difference.fits")
    assert data.shape == (10, 10)
    np.testing.assert_allclose(data, -3, rtol=1e-6)
    assert found.meta["sign"] == "minus"


@pytest.mark.usefixtures("inverse")
def test_a_new_format_needs_no_other_change(tmp_path: Path) -> None:
    frame, _ = images_of_the_sky(tmp_path / "survey")
    found = swathe.cut_many(
        {"file": [str(frame)], "x": [5], "y": [5], "width": [2], "height": [1]},
        tmp_path / "o",
        format="txt",
        progress=False,
    )
    assert found["status"].tolist() == ["ok"]
    assert found.meta["predicted_s"] > 0.1
    result = tmp_path / "o" / found["path"][0]
    assert result.read_text() == "-7.0 -7.0"


@pytest.mark.usefixtures("difference")
def test_a_new_operation_runs_as_a_job(tmp_path: Path, catalog: Catalog) -> None:
    paths = images_of_the_sky(tmp_path / "survey")
    catalog.add_store("survey", str(tmp_path / "survey"))
    options = Options.from_mapping({"operation": "difference", "sign": "plus"})
    table = table_of([f"survey:{path.name}" for path in paths])
    with Jobs(catalog, tmp_path / "results", limits=Limits()) as jobs, running(jobs):
        estimate = jobs.estimate(table, options)
        assert estimate.prediction is not None
        assert estimate.bytes_out > 0
        job = ended(jobs, jobs.submit(table, options, "me"))
        assert (job.phase, job.counts["ok"]) == ("COMPLETED", 3)
        assert job.options.as_dict()["sign"] == "plus"
        result = jobs.result(job.id, "difference.fits")
        assert result.media_type == "application/fits"
        with result.open() as file:
            np.testing.assert_allclose(fits.getdata(file), 3, rtol=1e-6)


@pytest.mark.usefixtures("difference")
def test_an_image_that_an_operation_does_not_use_says_so(tmp_path: Path, catalog: Catalog) -> None:
    paths = images_of_the_sky(tmp_path / "survey")
    catalog.add_store("survey", str(tmp_path / "survey"))
    table = {name: [*column, column[0]] for name, column in table_of(list(map(str, paths))).items()}
    for resume in (False, True):
        found = swathe.cut_many(
            table, tmp_path / "o", operation="difference", progress=False, resume=resume
        )
        assert found["status"].tolist() == ["ok", "ok", "no-overlap", "ok"]
        reason = "difference: operation difference does not use this image"
        assert found["reason"].tolist() == ["", "", reason, ""]
    np.testing.assert_allclose(fits.getdata(tmp_path / "o" / "difference.fits"), -3, rtol=1e-6)
    table["file"] = [f"survey:{Path(str(file)).name}" for file in table["file"]]
    with Jobs(catalog, tmp_path / "results", limits=Limits()) as jobs, running(jobs):
        job = ended(jobs, jobs.submit(table, Options(operation="difference"), "me"))
        rows = {row.id: (row.status, row.reason) for row in jobs.rows(job.id)}
        assert rows == {
            "0": ("ok", ""),
            "1": ("ok", ""),
            "2": ("no-overlap", reason),
            "difference": ("ok", ""),
        }
        with jobs.result(job.id, "difference.fits").open() as file:
            np.testing.assert_allclose(fits.getdata(file), -3, rtol=1e-6)


@pytest.mark.usefixtures("difference")
def test_pages_and_models_ask_the_registry() -> None:
    names = ["cut", "algorithm", "difference", "mse", "reduce", "rgb", "stack", "volren"]
    assert list(operations()) == names
    of_algorithms = ["algorithm", "parameters", "files", "register_as"]
    others = ["sign", "grid", "statistics", "where", "array", "stack"]
    others += ["azimuth", "elevation", "side", "opacity"]
    assert list(own_options()) == [*of_algorithms, *others]
    assert ResultOptions.read("difference").own == {"sign": "plus"}
    with pytest.raises(JobError, match="option sign: expected operation difference, found cut"):
        Options.from_mapping({"sign": "plus"})


ALL_DOORS = """
import sys
from pathlib import Path

from swathe.operations import kinds

kinds.__path__.append(sys.argv[1])

from typer.testing import CliRunner

from swathe.cli.app import app
from swathe.portal.api.models import OptionsModel
from swathe.portal.pages.submission import FIELDS, options_of

names = {"cut": "cut|difference|mse|rgb|stack|volren", "job submit": "|reduce|rgb|stack|volren"}
for command, operations in names.items():
    shown = CliRunner().invoke(app, [*command.split(), "--help"]).output
    assert operations in shown, shown
    assert ("cut|algorithm" in shown) == ("reduce" in operations), shown
    assert ("--where" in shown) == ("reduce" in operations), shown
    assert "--sign plus|minus" in shown, shown
schema = OptionsModel.model_json_schema()["properties"]
assert "difference" in schema["operation"]["anyOf"][0]["enum"], schema
assert schema["sign"]["anyOf"][0]["enum"] == ["plus", "minus"], schema
assert schema["where"]["anyOf"][0] == {"type": "string"}, schema
chosen = {**FIELDS, "operation": "difference", "sign": "minus"}
assert options_of(chosen)["sign"] == "minus"
assert "sign" not in options_of(FIELDS)
"""


@pytest.mark.usefixtures("difference")
def test_all_doors_show_a_new_operation(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", ALL_DOORS, str(tmp_path / "kinds")], check=True)


def test_operations_are_whole() -> None:
    classes = {
        "cut": ConvertingOperation,
        "reduce": ReducingOperation,
        "algorithm": ProgramOperation,
        "mse": ConvertingOperation,
        "volren": ConvertingOperation,
    }
    assert list(operations()) == ["cut", "algorithm", "mse", "reduce", "rgb", "stack", "volren"]
    for name, kind in operations().items():
        assert isinstance(kind, classes.get(name, CombiningOperation))
        assert kind.is_combined == isinstance(kind, GroupingOperation | ProgramOperation)
        assert kind.reads_granules == isinstance(kind, ReducingOperation | ProgramOperation)
        assert kind.title
        assert kind.formats
    names = [option.name for kind in operations().values() for option in kind.options]
    assert len(names) == len(set(names)), "options of two operations have one name"
    assert list(formats()) == [
        *["fits", "npy", "png", "nc", "h5", "tif", "asdf", "source"],
        "zip",
        "csv",
        "rgb",
        "volren",
    ]


def test_a_format_of_one_operation_chooses_it() -> None:
    assert ResultOptions.read(None, "rgb").operation == "rgb"
    assert ResultOptions.read("cut", "rgb").operation == "rgb"
    assert ResultOptions.read("rgb").format == "rgb"
    assert ResultOptions.read("stack").format == "fits"
    assert Options(format="rgb", bands=("r", "g", "b")).operation == "rgb"


@pytest.mark.parametrize(
    ("operation", "file_format", "own", "text"),
    [
        (
            "sum",
            None,
            {},
            "operation: expected one of cut, algorithm, mse, reduce, rgb, stack, volren, found",
        ),
        (["cut"], None, {}, r"operation: expected a name, found \['cut'\]"),
        (
            None,
            "jpg",
            {},
            "format: expected one of fits, npy, png, nc, h5, tif, asdf, source, csv, rgb, volren",
        ),
        ("stack", "rgb", {}, "format: expected fits for operation stack, found 'rgb'"),
        ("stack", None, {"stack": "sum"}, "stack: expected one of mean, "),
        ("cut", None, {"stack": "mean"}, "stack: expected operation stack, found cut"),
        ("cut", None, {"thread": 3}, "thread: expected an option"),
        ("reduce", "fits", {}, "format: expected nc for operation reduce, found 'fits'"),
        ("volren", None, {"side": 0}, "side: expected a whole number from 1 to 1024, found 0"),
        ("volren", None, {"side": "1.5"}, "side: expected a whole number"),
        ("volren", None, {"side": 1.5}, "side: expected a whole number"),
        ("volren", None, {"side": True}, "side: expected a whole number"),
        ("volren", None, {"azimuth": "nan"}, "azimuth: expected a number from -360 to 360"),
        ("volren", None, {"azimuth": 10**400}, "azimuth: expected a number"),
        ("volren", None, {"azimuth": [1]}, "azimuth: expected a number"),
        ("reduce", None, {"array": "a" * 501}, "array: expected at most 500 characters, found 501"),
    ],
)
def test_what_does_not_fit_is_refused(
    operation: str, file_format: str, own: dict[str, object], text: str
) -> None:
    with pytest.raises(OptionError, match=text):
        ResultOptions.read(operation, file_format, (), own)


def test_options_that_are_texts() -> None:
    read = ResultOptions.read("reduce", own={"statistics": ["mean", "std"], "where": " qa == 0 "})
    assert read.own == {
        "grid": "0.25deg",
        "statistics": "mean,std",
        "where": "qa == 0",
        "array": "",
    }


def test_options_that_are_numbers() -> None:
    own = {"azimuth": "45", "elevation": -5, "side": "64"}
    read = ResultOptions.read("volren", own=own).own
    assert read == {"azimuth": 45.0, "elevation": -5.0, "side": 64, "opacity": 0.05}
    assert Options.from_mapping({"operation": "volren", "side": 64}).results.own["side"] == 64


def test_granules_are_not_cut(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="expected one that cuts, found 'reduce': use"):
        swathe.cut_many({"file": ["a.nc"]}, tmp_path, operation="reduce")


def test_commands_start_without_numpy() -> None:
    # The shell lists operations and their options.
    code = (
        "import sys; from swathe.operations.registry import operations; operations(); "
        "print('numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_operations_say_what_their_results_need() -> None:
    """Jobs ask these of any operation, not which one it is."""
    kinds = operations()
    assert [name for name, kind in kinds.items() if not kind.needs_grid] == ["algorithm", "reduce"]
    own = {"statistics": "std,count", "grid": "90deg", "where": "", "side": 10}
    said = {name: (kind.shown_array(own), kind.result_bytes(own)) for name, kind in kinds.items()}
    assert said.pop("reduce") == ("std", 2 * 4 * 8 * 3)
    assert (said.pop("volren"), said.pop("mse")) == (("", 300), ("", 100))
    assert set(said.values()) == {("", None)}
