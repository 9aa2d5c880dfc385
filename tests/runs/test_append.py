"""Arrays of mode `append` grow by blocks of any length, and are read up to what is durable."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import swathe
from swathe.catalog import Catalog
from swathe.core.errors import FormatError, NoSuchRunError, OptionError, OutputError, RegionError
from swathe.runs.planning.store_rooms import store_rates
from swathe.runs.reading.grown_array import GrownArray
from swathe.runs.storage import object_writer
from swathe.runs.writing.ranks import Ranks
from tests.runs.test_run import together

RNG = np.random.default_rng(20261128)


@pytest.fixture(autouse=True)
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a store `disk`; there is another one, `spare`."""
    monkeypatch.setenv("SWATHE_DATABASE", f"sqlite:///{tmp_path / 'catalog.sqlite'}")
    with Catalog.open() as catalog:
        for name in ("disk", "spare"):
            catalog.add_store(name, str(tmp_path / name), "local")
    return tmp_path / "disk"


def write_rows(lengths: list[list[int]], shape: tuple[int, ...], dtype: str = "i4") -> np.ndarray:
    """Write as many rows as each rank has at each iteration; return all of them."""
    size = len(lengths[0])
    total = sum(map(sum, lengths))
    whole = RNG.integers(0, 100, (total, *shape[1:])).astype(dtype)

    def program(ranks: Ranks) -> None:
        with swathe.run("app", len(lengths) - 1, comm=ranks) as run:
            array = run.array("p", shape, dtype, mode="append", location=["disk", "spare"])
            first = 0
            for iteration, of_ranks in enumerate(lengths):
                own = first + sum(of_ranks[: ranks.rank])
                array.write(iteration, whole[own : own + of_ranks[ranks.rank]])
                first += sum(of_ranks)

    together(size, program)
    return whole


def grown() -> GrownArray:
    array = swathe.open_run("app")["p"]
    assert isinstance(array, GrownArray)
    return array


def group_of(folder: Path) -> Any:
    return zarr.open_group(folder / "runs" / swathe.open_run("app").record.folder, mode="r")


@settings(
    max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    lengths=st.integers(1, 3).flatmap(
        lambda size: st.lists(
            st.lists(st.integers(0, 9), min_size=size, max_size=size), min_size=1, max_size=5
        )
    ),
    shape=st.sampled_from([(4,), (7, 3), (3, 5, 2)]),
    limits=st.sampled_from([(16, 64), (1 << 20, 1 << 26)]),
)
def test_rows_of_all_ranks_follow_each_other(
    disk: Path, lengths: list[list[int]], shape: tuple[int, ...], limits: tuple[int, int]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("swathe.runs.definition.shards.CHUNK_BYTES", limits[0])
        patch.setattr("swathe.runs.definition.shards.SHARD_BYTES", limits[1])
        whole = write_rows(lengths, shape)
        array = grown()
        assert (array.shape, array.dtype, len(array)) == (whole.shape, whole.dtype, len(whole))
        np.testing.assert_array_equal(np.asarray(array), whole)
        np.testing.assert_array_equal(array[1::2], whole[1::2])
        ends = np.cumsum([sum(each) for each in lengths])
        assert [array.rows_of(at).stop for at in range(len(lengths))] == ends.tolist()
    np.testing.assert_array_equal(group_of(disk)["p"][...], whole)


def test_indices_are_those_of_numpy() -> None:
    whole = write_rows([[5], [0], [8]], (4, 3))
    array = grown()
    np.testing.assert_array_equal(array[-2:, 1], whole[-2:, 1])
    np.testing.assert_array_equal(array[12], whole[12])
    assert array[3:3].shape == (0, 3)
    assert list(array) == [0, 1, 2] and array.rows_of(1) == slice(5, 5)
    with pytest.raises(RegionError):
        array[13]
    with pytest.raises(NoSuchRunError, match="expected an iteration that was written, found 9"):
        array.rows_of(9)


def test_a_reader_sees_what_was_durable() -> None:
    with swathe.run("app", 9) as run:
        array = run.array("p", (4, 2), "i4", mode="append")
        array.write(0, np.zeros((3, 2), "i4"))
        run.sync()
        before = grown()
        array.write(1, np.ones((6, 2), "i4"))
        run.sync()
        assert before.shape == (3, 2) and not before[...].any()
        assert grown().shape == (9, 2)


def test_rows_go_to_the_next_store(monkeypatch: pytest.MonkeyPatch, disk: Path) -> None:
    written = object_writer.write_object

    def failing(name: str, *rest: Any) -> None:
        if name.startswith("disk:") and "/p/c/2" in name:
            raise OutputError(f"{name}: no space left")
        written(name, *rest)

    monkeypatch.setattr(object_writer, "write_object", failing)
    whole = write_rows([[2, 3], [1, 4], [3, 0], [4, 4]], (5, 2))  # shards of 5 rows
    array = grown()
    np.testing.assert_array_equal(array[...], whole)
    assert [dump.store for dump in array.dumps.values()] == ["disk", "disk", "spare", "spare"]
    other = group_of(disk.parent / "spare")
    np.testing.assert_array_equal(other["p"][10:], whole[10:])


def test_rows_before_a_failure_stay_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    written = object_writer.write_object

    def failing(name: str, *rest: Any) -> None:
        if name.startswith("disk:") and "/p/c/1" in name:
            raise OutputError(f"{name}: no space left")
        written(name, *rest)

    monkeypatch.setattr(object_writer, "write_object", failing)
    whole = write_rows([[3], [3], [3]], (4, 2))  # the first shard has rows of two dumps
    array = grown()
    np.testing.assert_array_equal(array[...], whole)
    assert [dump.store for dump in array.dumps.values()] == ["disk", "spare", "spare"]


def test_dumps_are_compared_with_what_their_size_costs() -> None:
    write_rows([[5], [800]], (5, 4))
    with Catalog.open() as catalog:
        small, large = store_rates(catalog, ["disk"])["disk"].outcomes
    assert large.model_s > 20 * small.model_s  # it has 160 shards


def test_blocks_that_do_not_fit_are_refused() -> None:
    with swathe.run("app", 2) as run:
        array = run.array("p", (4, 2), "i4", mode="append")
        for block in (np.zeros((3, 3), "i4"), np.zeros(3, "i4"), np.zeros((3, 2), "f4")):
            with pytest.raises(OptionError, match=r"expected a block of \(rows, 2\), int32"):
                array.write(0, block)
        array.write(0, np.ones((1, 2), "i4"))
    assert grown().shape == (1, 2)


def test_a_shard_that_was_lost_is_an_error(disk: Path) -> None:
    write_rows([[4], [4]], (4,))
    (disk / "runs" / swathe.open_run("app").record.folder / "p/c/1").unlink()
    with pytest.raises(FormatError, match="expected the shard p/c/1, found none"):
        grown()[0]
