"""Arrays by their paths, or by the last names of these."""

from __future__ import annotations

import pytest

from swathe.arrays.array_names import LONGEST_NAME, MOST_NEAR, MOST_PATHS, ArrayNames

PATHS = ["/lat", "/g/LST", "/g/QC", "/h/QC", "/h/lat", "/deep/er/Cloud Mask"]
NAMES = ArrayNames(PATHS)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("/g/LST", "/g/LST"),
        ("g/LST", "/g/LST"),
        ("LST", "/g/LST"),
        ("/LST", "/g/LST"),
        ("Cloud Mask", "/deep/er/Cloud Mask"),
        ("lat", "/lat"),  # the path of one comes before the name of another
        ("h/lat", "/h/lat"),
    ],
)
def test_a_path_or_the_only_array_of_a_name(text: str, path: str) -> None:
    assert NAMES.path_of(text) == path


@pytest.mark.parametrize("text", ["QC", "lst", "er/Cloud Mask", "LST/", "//LST", "", "/", "g"])
def test_no_array_or_several(text: str) -> None:
    assert NAMES.path_of(text) is None


def test_root_array_of_zarr() -> None:
    assert ArrayNames(["/"]).path_of("/") == "/"
    assert ArrayNames(["/"]).path_of("array") is None


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("QC", "2 arrays have this name: /g/QC, /h/QC"),
        ("/QC", "2 arrays have this name: /g/QC, /h/QC"),
        ("lst", "near it are /g/LST, /lat, /h/lat"),
        ("other/lst", "near it are /g/LST, /lat, /h/lat"),
        ("cloud", "near it are /deep/er/Cloud Mask"),
        ("nothing", f"arrays are {', '.join(PATHS)}"),
        ("", f"arrays are {', '.join(PATHS)}"),
    ],
)
def test_hint_lists_arrays_of_the_name_or_near_names(text: str, hint: str) -> None:
    assert NAMES.hint(text) == hint


def test_hints_are_short() -> None:
    many = ArrayNames(f"/{number}/{name}" for number in range(100) for name in ("a", "bcd"))
    assert many.hint("a").count("/") == 2 * MOST_NEAR and many.hint("a").endswith(", ...")
    assert many.hint("bce").count("/") == 2 * MOST_NEAR
    assert many.hint("xyz").count("/") == 2 * MOST_PATHS
    assert ArrayNames([]).hint("a") == "the file has no array"
    long = ArrayNames(["/" + "a" * 10 * LONGEST_NAME])
    assert long.hint("a" * LONGEST_NAME).startswith("near it are /aaa")
