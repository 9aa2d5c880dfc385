"""Files of cuts in ASDF: what comes of the tree of their source."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import swathe
from swathe.arrays.readers.asdf_tree import node_of_rest
from swathe.core.errors import ChangedError, FormatError

asdf = pytest.importorskip("asdf")
yaml = pytest.importorskip("yaml")
time = pytest.importorskip("astropy.time")
META: dict[str, Any] = {
    "instrument": {"name": "WFI", "optical_element": "F158", "detectors": ["WFI01", "WFI02"]},
    "exposure": {"ma_table_number": 3, "level0_compressed": True, "times": [0.5, 1.5]},
    "cal_logs": [{"step": "flat", "ok": True}, {"step": "dark", "ok": False}],
    "a/b~c": {"1": "one"},
    "empty": None,
}


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """Return a file as Roman has them: arrays beside metadata."""
    path = tmp_path / "image.asdf"
    values = np.arange(600, dtype="f4").reshape(20, 30)
    start = {"start": time.Time("2027-01-02T03:04:05", format="isot")}
    roman = {"meta": META | start, "data": values, "err": values / 10}
    asdf.AsdfFile({"roman": roman, "dims": "of the source"}).write_to(path)
    return path


def written(source: Path, path: Path) -> dict[str, Any]:
    """Return the tree of a cut that was written."""
    cut: Any = swathe.cut(source, array="/roman/data", box=(3, 4, 6, 5))
    cut.write(path, overwrite=True)
    with asdf.open(path, memmap=False, lazy_load=False) as file:
        return dict(file.tree)


def test_metadata_come_and_other_arrays_do_not(image: Path, tmp_path: Path) -> None:
    tree = written(image, tmp_path / "cut.asdf")
    values = np.arange(600, dtype="f4").reshape(20, 30)
    assert np.array_equal(tree["roman"]["data"], values[4:9, 3:9])
    assert set(tree["roman"]) == {"data", "meta"}
    meta = dict(tree["roman"]["meta"])
    assert str(meta.pop("start")).startswith("2027-01-02T03:04:05")
    assert meta == META
    assert tree["dims"] == {"data": ["axis_0", "axis_1"]}


def test_cut_of_a_cut_keeps_metadata(image: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "cut.asdf", tmp_path / "again.asdf"
    tree = written(image, first)
    cut: Any = swathe.cut(first, array="/roman/data", box=(1, 1, 2, 2))
    cut.write(second)
    with asdf.open(second, memmap=False, lazy_load=False) as file:
        assert file.tree["roman"]["meta"] == tree["roman"]["meta"]
        assert list(file.tree["roman"]["data"][0]) == [154.0, 155.0]


def test_source_that_changed_is_refused(image: Path, tmp_path: Path) -> None:
    cut: Any = swathe.cut(image, array="/roman/data", box=(3, 4, 6, 5))
    asdf.AsdfFile({"roman": {"data": np.zeros((20, 30), "f8")}}).write_to(image)
    with pytest.raises(ChangedError, match="rest of its tree cannot be written"):
        cut.write(tmp_path / "cut.asdf")


HEAD = """#ASDF 1.0.0
#ASDF_STANDARD 1.5.0
%YAML 1.1
%TAG ! tag:stsci.edu:asdf/
--- !core/asdf-1.1.0
data: !core/ndarray-1.0.0 {data: [[1, 2, 3], [4, 5, 6]], datatype: int16}
"""


def rest_of(text: str, folder: Path) -> dict[Any, Any]:
    """Return the rest of the tree of a cut; it must be that of the source."""
    source, result = folder / "source.asdf", folder / "cut.asdf"
    source.write_text(f"{HEAD}{text}...\n", encoding="utf-8")
    cut: Any = swathe.cut(source, array="/data", box=(0, 0, 2, 2))
    cut.write(result)
    trees = []
    for path in (source, result):
        with asdf.open(path, memmap=False, lazy_load=False) as file:
            trees.append({key: value for key, value in file.tree.items() if key not in OWN})
            assert np.array_equal(np.asarray(file["data"])[:, :2], [[1, 2], [4, 5]])
    assert repr(trees[0]) == repr(trees[1])
    return trees[1]


OWN = {"asdf_library", "history", "data", "attributes", "dims"}


@pytest.mark.parametrize(
    "text",
    [
        "two: {0: a, 1: b}\n",
        "texts: {'0': a, '1': b}\n",
        "mix: [true, 1, 1.5, null, a, 'true', '1']\n",
        "numbers: [1.0e+16, -1.0e-300, .nan, .inf, -.inf, 0.1, -0.0]\n",
        "empty: {a: {}, b: [], c: ''}\n",
        f"? {'long' * 300}\n: {{? {'k' * 2000} : 1}}\n",
        'odd: {"a: b": "# no", "\\t\\0\\x85": "\\U0001F600 \\u2028 \\ud7ff é", "-": "? x"}\n',
        "deep: " + "[" * 100 + "1" + "]" * 100 + "\n",
    ],
    ids=range(8),
)
def test_the_rest_of_the_tree_is_that_of_the_source(text: str, tmp_path: Path) -> None:
    assert rest_of(text, tmp_path)


def test_dates_stay_dates(tmp_path: Path) -> None:
    text = "day: 2026-03-20\nlist: [2026-03-20, '2026-03-20']\nnight: 2026-03-20T12:30:01.5Z\n"
    tree = rest_of(text, tmp_path)
    assert tree["day"] == date(2026, 3, 20)
    assert tree["night"].microsecond == 500_000
    assert tree["list"] == [date(2026, 3, 20), "2026-03-20"]
    assert node_of_rest(yaml.compose("!!timestamp '}, x'")) == "}, x"


def test_a_tree_that_is_too_deep_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="expected at most 200 levels"):
        rest_of("deep: " + "[" * 300 + "1" + "]" * 300 + "\n", tmp_path)


def test_lists_of_arrays_keep_their_other_members(tmp_path: Path) -> None:
    array = "!core/ndarray-1.0.0 {data: [[1, 2], [3, 4]], datatype: int16}"
    text = f"{HEAD}all: [{{data: {array}, name: a}}, {{data: {array}, name: b}}, {array}, c]\n...\n"
    (tmp_path / "a.asdf").write_text(text)
    cut: Any = swathe.cut(tmp_path / "a.asdf", array="/all/1/data", box=(0, 0, 1, 1))
    cut.write(tmp_path / "cut.asdf")
    with asdf.open(tmp_path / "cut.asdf", memmap=False, lazy_load=False) as file:
        tree = file.tree["all"]
    assert tree[0] == {"name": "a"} and tree["1"]["name"] == "b" and tree[3] == "c"


def test_many_mappings_are_text(tmp_path: Path) -> None:
    """asdf itself makes no node of them."""
    many = "".join(f"  k{number}: {{a: {number}}}\n" for number in range(2000))
    assert len(rest_of(f"many:\n{many}", tmp_path)["many"]) == 2000
    assert b'{"k0": {"a": 0}, ' in (tmp_path / "cut.asdf").read_bytes()
