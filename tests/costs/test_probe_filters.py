"""Chunks of all filters that can be written here, and the time to decode them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from swathe._swathe import decode_chunk
from swathe.core.sample_frame import draw
from swathe.costs.probing import probe_filters
from swathe.costs.probing.probe_filters import SIDE, make_chunks, measure_filters

ALWAYS = {"deflate", "gzip", "bzip2", "shuffle", "bitshuffle", "horizontal", "floating"}
EQUAL = {"deflate", "gzip", "bzip2", "shuffle", "lzf", "fletcher32", "szip", "scaleoffset"}
"""Filters whose decoded bytes must be the elements; the others take any bytes."""


def test_chunks_decode_to_the_elements_they_were_made_of() -> None:
    content = draw(1, 1)[:SIDE, :SIDE].astype("<u2").tobytes()
    for chunk in make_chunks():
        decoded = decode_chunk(json.dumps([chunk.description]), 0, chunk.content, chunk.size)
        assert len(decoded) == len(content)
        if chunk.name in EQUAL | {"zstd", "lz4", "blosc"}:
            assert decoded == content, chunk.name


def test_each_filter_has_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe_filters, "MOST_RUNS", 3)
    pytest.importorskip("h5py", reason="h5py writes chunks of lzf and szip")
    times = measure_filters()
    assert ALWAYS | {"lzf", "scaleoffset"} <= set(times)
    assert all(len(each) == 3 and np.min(each) > 0 for each in times.values())


def test_without_libraries_the_others_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe_filters, "find_spec", lambda _: None)
    assert {chunk.name for chunk in make_chunks()} == ALWAYS
