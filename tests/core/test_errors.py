"""Every error of Rust has its class, every class is raised, and each says what and where."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import swathe
from swathe.core import errors
from tests.conftest import fits_bytes
from tests.support.scripted_servers import Handler, serving

CRATES = Path(__file__).parents[2] / "crates"
CLASSES = {
    name: kind
    for name, kind in vars(errors).items()
    if inspect.isclass(kind) and issubclass(kind, Exception)
}
BUILT_IN: dict[str, type[BaseException]] = {
    "NotFoundError": FileNotFoundError,
    "AccessError": PermissionError,
    "SourceError": OSError,
    "ChangedError": OSError,
    "OnTapeError": OSError,
    "StagingError": OSError,
    "FormatError": ValueError,
    "NoSuchHduError": KeyError,
    "NoSuchArrayError": KeyError,
    "NotAnImageError": KeyError,
    "RegionError": ValueError,
    "NoOverlapError": ValueError,
    "PartialOverlapError": ValueError,
    "PixelIndexError": IndexError,
    "OptionError": ValueError,
    "TargetsError": ValueError,
    "OutputError": OSError,
    "OutputExistsError": FileExistsError,
    "NoSuchStoreError": KeyError,
    "StoreSettingsError": ValueError,
    "NoSuchDatasetError": KeyError,
    "DatasetError": ValueError,
    "TokenError": PermissionError,
    "SettingsError": ValueError,
    "JobError": ValueError,
    "NoSuchJobError": KeyError,
    "NoSuchResultError": KeyError,
    "NoSuchRunError": KeyError,
    "AlgorithmError": ValueError,
    "AlgorithmExistsError": ValueError,
    "NoSuchAlgorithmError": KeyError,
    "SubscriptionError": ValueError,
    "NoSuchSubscriptionError": KeyError,
    "CursorError": ValueError,
    "DeliveryError": OSError,
    "WebhookError": OSError,
    "LimitError": Exception,
    "TraceError": ValueError,
    "QueryError": ValueError,
    "SandboxError": OSError,
    "SandboxBusyError": OSError,
    "SandboxUnavailableError": OSError,
    "ProgramError": RuntimeError,
    "CatalogError": OSError,
    "CatalogSetupError": OSError,
}
# Variants that crates/python/src/errors.rs leaves to a `_` arm, on purpose: trying again may
# help (SourceError), or nobody can do anything about it (SwatheError).
TO_THE_WILDCARD = {
    "StoreError": {"Damaged", "Interrupted", "Io", "Network", "ShortRead", "Unsupported"},
    "EngineError": {"Internal"},
    "RegionError": {"Axes", "Empty", "TooLarge"},
}
SOURCES = {
    "StoreError": CRATES / "store-api/src/error.rs",
    "EngineError": CRATES / "engine/src/error.rs",
    "RegionError": CRATES / "array/src/region.rs",
}


# ---- The tree


def test_every_class_is_a_swathe_error_and_the_built_in_one_expects() -> None:
    assert set(CLASSES) == set(BUILT_IN) | {"SwatheError"}
    for name, expected in BUILT_IN.items():
        assert issubclass(CLASSES[name], errors.SwatheError)
        assert issubclass(CLASSES[name], expected)
        assert str(CLASSES[name]("what and where")) == "what and where"
    assert issubclass(errors.NoOverlapError, errors.RegionError)
    assert issubclass(errors.PartialOverlapError, errors.RegionError)
    assert str(errors.SwatheError()) == ""


def test_the_tree_is_drawn_in_the_docstring() -> None:
    drawn = re.findall(r"\b([A-Z]\w*Error)\b", errors.__doc__ or "")
    assert set(CLASSES) <= set(drawn)


def variants(enum: str) -> set[str]:
    """Names of the variants of a Rust enum, from its source."""
    source = SOURCES[enum].read_text()
    body = source.split(f"pub enum {enum} {{", 1)[1].split("\n}", 1)[0]
    return set(re.findall(r"^    ([A-Z]\w*)\s*(?:\{|\(|,)", body, re.MULTILINE))


@pytest.mark.parametrize("enum", SOURCES)
def test_every_variant_of_rust_has_a_class(enum: str) -> None:
    mapping = (CRATES / "python/src/errors.rs").read_text()
    named = set(re.findall(rf"\b{enum}::(\w+)", mapping))
    found = variants(enum)
    assert len(found) >= 5
    assert named <= found | {"Store"}
    # A new variant has to be named in errors.rs, or here.
    assert found - named == TO_THE_WILDCARD[enum]


def test_every_class_rust_names_is_there() -> None:
    mapping = (CRATES / "python/src/errors.rs").read_text()
    named = set(re.findall(r'"(\w+Error)"', mapping))
    assert named <= set(CLASSES)
    # Lists of targets, indices of sections and the catalogue are read in Python.
    in_python = {"NotAnImageError", "OptionError", "PixelIndexError", "TargetsError"}
    in_python |= {"NoSuchStoreError", "StoreSettingsError", "CatalogError", "CatalogSetupError"}
    in_python |= {"NoSuchDatasetError", "OnTapeError", "StagingError"}
    in_python |= {"SettingsError", "TokenError"}
    in_python |= {"AlgorithmError", "AlgorithmExistsError", "NoSuchAlgorithmError"}
    in_python |= {"SubscriptionError", "NoSuchSubscriptionError", "CursorError"}
    in_python |= {"DeliveryError", "WebhookError", "QueryError"}
    in_python |= {"SandboxError", "SandboxUnavailableError", "SandboxBusyError", "ProgramError"}
    in_python |= {"JobError", "NoSuchJobError", "NoSuchResultError", "NoSuchRunError", "LimitError"}
    elsewhere = {"TraceError"}  # in trace.rs: recording is beside the engine
    assert set(CLASSES) - named == in_python | elsewhere


# ---- Each is raised by something


class Refusing(Handler):
    """Answers with the status that the path names."""

    def do_GET(self) -> None:
        self.answer(int(self.path.split("/")[1]))

    do_HEAD = do_GET


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with serving(Refusing) as url:
        yield url


@pytest.fixture(scope="module")
def image(new_path: Callable[[str], Path]) -> Path:
    path = new_path(".fits")
    path.write_bytes(fits_bytes(np.arange(200, dtype=">i2").reshape(10, 20)))
    return path


def expect(kind: type[Exception], where: str, work: Callable[[], object]) -> None:
    """Exactly this class, and a message that says where."""
    with pytest.raises(kind) as caught:
        work()
    assert type(caught.value) is kind
    assert where in str(caught.value)
    assert "\n" not in str(caught.value)


def test_not_found(server: str, tmp_path: Path) -> None:
    missing = tmp_path / "missing.fits"
    expect(errors.NotFoundError, str(missing), lambda: swathe.open(missing))
    expect(errors.NotFoundError, str(missing), lambda: swathe.cut(missing, box=(0, 0, 1, 1)))
    (tmp_path / "file").touch()
    expect(errors.NotFoundError, "file/x.fits", lambda: swathe.open(tmp_path / "file" / "x.fits"))
    expect(errors.NotFoundError, "/404/x", lambda: swathe.open(f"{server}/404/x.fits"))


def test_access(server: str) -> None:
    for status in (401, 403):
        url = f"{server}/{status}/x.fits"
        expect(errors.AccessError, url, lambda url=url: swathe.open(url))  # type: ignore[misc]


def test_source(tmp_path: Path) -> None:
    for source in (
        str(tmp_path), "/dev/null", "ftp://example.org/x.fits", "http://127.0.0.1:1/x.fits",
    ):  # fmt: skip
        expect(errors.SourceError, source, lambda source=source: swathe.open(source))  # type: ignore[misc]
    expect(errors.SourceError, "", lambda: swathe.open("s3://"))
    expect(errors.SourceError, "", lambda: swathe.open(""))
    expect(errors.SourceError, "", lambda: swathe.open("a\0b"))


def test_format(tmp_path: Path) -> None:
    path = tmp_path / "not.fits"
    path.write_bytes(b"<html>no</html>" * 300)
    expect(errors.FormatError, str(path), lambda: swathe.open(path).image())
    path = tmp_path / "cut-off.fits"
    path.write_bytes(fits_bytes(np.zeros((100, 100), ">i2"))[:6000])
    expect(errors.FormatError, str(path), lambda: swathe.cut(path, box=(0, 90, 5, 5)))
    assert swathe.cut(path, box=(0, 0, 5, 5)).shape == (5, 5)


def test_no_such_hdu(image: Path) -> None:
    expect(errors.NoSuchHduError, str(image), lambda: swathe.open(image)[7])
    expect(errors.NoSuchHduError, str(image), lambda: swathe.open(image)["SCI"])
    with pytest.raises(errors.NoSuchHduError, match=r"no HDU 7; there is only HDU 0 \(image\)"):
        swathe.cut(image, box=(0, 0, 1, 1), hdu=7)
    with pytest.raises(errors.NoSuchHduError, match="no HDU -7: expected -1 to 0"):
        swathe.cut(image, box=(0, 0, 1, 1), hdu=-7)


def test_a_mode_of_many_cuts_that_is_unknown(image: Path, tmp_path: Path) -> None:
    rows = {"file": [image], "x0": [0], "y0": [0], "width": [1], "height": [1]}
    wrong: Any = "sideways"
    with pytest.raises(errors.RegionError, match="mode: expected 'trim', 'partial' or 'strict'"):
        swathe.cut_many(rows, tmp_path / "out", mode=wrong)


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        (errors.NoOverlapError, {"box": (20, 0, 5, 5)}),
        (errors.NoOverlapError, {"box": (-5, 0, 5, 5), "mode": "partial"}),
        (errors.NoOverlapError, {"center": (0, 1e9), "shape": (5, 5), "mode": "strict"}),
        (errors.PartialOverlapError, {"box": (-1, 0, 5, 5), "mode": "strict"}),
        (errors.RegionError, {"box": (0, 0, 10**9, 10**9), "mode": "partial"}),
        (errors.RegionError, {"box": (-1, 0, 5, 5), "mode": "partial", "fill": 0.5}),
        (errors.RegionError, {"box": (0, 0, 5, 5), "planes": 0}),
        (errors.RegionError, {"sky": (1, 2), "size_deg": 1}),
    ],
)
def test_regions(kind: type[Exception], arguments: dict[str, Any], image: Path) -> None:
    expect(kind, f"{image}, HDU 0", lambda: swathe.cut(image, **arguments))


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"box": (0, 0, 1, 1), "center": (1, 1), "shape": 3},
        {"box": (0, 0, 1, 1), "shape": 3},
        {"center": (1, 1)},
        {"shape": 3},
        {"sky": (1, 1)},
        {"size_deg": 1},
        {"center": (1, 1), "size_deg": 1},
        {"box": (0, 0, 0, 1)},
        {"box": (0, 0, 1, -1)},
        {"box": (0.5, 0, 1, 1)},
        {"box": (float("nan"), 0, 1, 1)},
        {"center": (float("nan"), 1), "shape": 3},
        {"center": (1, float("inf")), "shape": 3},
        {"center": (1, 1), "shape": (0, 3)},
        {"center": (1, 1), "shape": (3, float("nan"))},
        {"box": (0, 0, 1, 1), "mode": "sideways"},
    ],
)
def test_regions_without_sense(arguments: dict[str, Any], image: Path) -> None:
    expect(errors.RegionError, "", lambda: swathe.cut(image, **arguments))


@pytest.mark.parametrize(
    "arguments",
    [
        {"box": (0, 0, 1)},
        {"box": ("a", 0, 1, 1)},
        {"box": 3},
        {"center": (1, 1), "shape": "x"},
        {"box": (0, 0, 1, 1), "hdu": 1.5},
        {"box": (0, 0, 1, 1), "fill": "x"},
        {"box": (0, 0, 1, 1), "mode": 3},
        {"box": (0, 0, 1, 1), "planes": "x"},
        {"corner": (0, 0)},
    ],
)
def test_arguments_of_a_wrong_type(arguments: dict[str, Any], image: Path) -> None:
    with pytest.raises((TypeError, ValueError)):
        swathe.cut(image, **arguments)
    with pytest.raises(TypeError):
        swathe.open(3)  # type: ignore[arg-type]


def test_targets(tmp_path: Path) -> None:
    table = tmp_path / "targets.csv"
    table.write_text("file,x\nimage.fits,3\n")
    expect(errors.TargetsError, "", lambda: swathe.cut_many(table, tmp_path / "out"))
    table.write_text("no table\x00at all")
    expect(errors.TargetsError, "", lambda: swathe.cut_many(table, tmp_path / "out"))
    missing = tmp_path / "nope.csv"
    expect(errors.NotFoundError, str(missing), lambda: swathe.cut_many(missing, tmp_path))


def test_output(image: Path, tmp_path: Path) -> None:
    cut = swathe.cut(image, box=(0, 0, 5, 5))
    for suffix in (".fits", ".npy", ".png", ".jpg"):
        path = tmp_path / "missing" / f"cut{suffix}"
        expect(errors.OutputError, str(path), lambda path=path: cut.write(path))  # type: ignore[misc]


def test_errors_travel_between_processes() -> None:
    import pickle

    for kind in CLASSES.values():
        again = pickle.loads(pickle.dumps(kind("x.fits: what")))
        assert type(again) is kind
        assert str(again) == "x.fits: what"
