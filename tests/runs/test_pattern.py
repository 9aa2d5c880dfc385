"""Patterns of HPF: each element has one rank, blocks are those of the standard."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swathe.core.errors import OptionError
from swathe.runs.definition.pattern import MOST_RANKS, Pattern

AXES = st.sampled_from(["BLOCK", "*", "CYCLIC", "CYCLIC(3)", "CYCLIC(100)"])


@given(st.lists(st.tuples(AXES, st.integers(0, 13)), min_size=2, max_size=4), st.integers(1, 24))
def test_each_element_has_one_rank(axes: list[tuple[str, int]], ranks: int) -> None:
    shape = tuple(length for _, length in axes)
    pattern = Pattern.parse(",".join(name for name, _ in axes), len(axes))
    division = pattern.division(shape, ranks)
    owner, count = np.full(shape, -1), np.zeros(shape, int)
    rebuilt = np.zeros(shape, int)
    numbers = np.arange(math.prod(shape)).reshape(shape)
    for rank in range(ranks):
        block = np.full(division.block_shape(rank), -1)
        for whole, own in division.pieces(rank):
            owner[whole], block[own] = rank, numbers[whole]
            count[whole] += 1
            rebuilt[whole] = block[own]
        assert (block >= 0).all()
    assert (count == 1).all()
    np.testing.assert_array_equal(rebuilt, numbers)
    assert Pattern.parse(str(pattern), len(axes)) == pattern


@pytest.mark.parametrize(
    ("text", "length", "parts", "owners"),
    [
        # HPF 2.0, 3.3: BLOCK deals ceiling(N / P) each, CYCLIC(k) deals blocks of k in turn.
        ("BLOCK", 10, 4, "0001112223"),
        ("BLOCK", 9, 4, "000111222"),
        ("CYCLIC", 10, 4, "0123012301"),
        ("CYCLIC(2)", 11, 3, "00112200112"),
        ("*", 5, 3, "00000"),
    ],
)
def test_blocks_are_those_of_the_standard(text: str, length: int, parts: int, owners: str) -> None:
    division = Pattern.parse(text, 1).division((length,), parts)
    found = np.full(length, -1)
    for rank in range(parts):
        for (span,), _ in division.pieces(rank):
            found[span] = rank
    assert "".join(map(str, found)) == owners


@pytest.mark.parametrize(
    ("pattern", "shape", "ranks", "grid"),
    [
        ("BBB", (128, 128, 128), 8, (2, 2, 2)),
        ("BBB", (128, 128, 128), 12, (3, 2, 2)),
        ("B**", (128, 128, 128), 8, (8, 1, 1)),
        ("*BB", (4, 1000, 10), 6, (1, 6, 1)),
        ("***", (4, 4, 4), 6, (1, 1, 1)),
        ("BBB", (4, 4, 4), 7, (7, 1, 1)),
    ],
)
def test_ranks_are_spread_evenly(
    pattern: str, shape: tuple[int, ...], ranks: int, grid: tuple[int, ...]
) -> None:
    assert Pattern.parse(pattern, len(shape)).division(shape, ranks).grid == grid


def test_letters_and_names_are_the_same() -> None:
    assert Pattern.parse("b*c", 3) == Pattern.parse("block, *, cyclic(1)", 3)
    assert str(Pattern.parse("BLOCK,*,CYCLIC(4)", 3)) == "BLOCK,*,CYCLIC(4)"


@pytest.mark.parametrize(
    "text", ["", "B", "BBBB", "BXB", "CYCLIC(0),*,*", "CYCLIC(,*,*", "B,B", "CYCLIC(-1),*,*"]
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(OptionError, match="pattern: expected"):
        Pattern.parse(text, 3)


def test_ranks_are_bounded() -> None:
    pattern = Pattern.parse("BBB", 3)
    for ranks in (0, MOST_RANKS + 1):
        with pytest.raises(OptionError, match="ranks: expected"):
            pattern.division((4, 4, 4), ranks)
    with pytest.raises(OptionError, match="rank: expected 0 to 1, found 2"):
        pattern.division((4, 4, 4), 2).spans(2)
    with pytest.raises(OptionError, match="at most 4 axes"):
        Pattern.parse("BBBBB", 5)
    assert math.prod(pattern.division((128, 128, 128), 720720).grid) == 720720
