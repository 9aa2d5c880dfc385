"""Sections of dumps on a server: what is asked of it, counted."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import swathe
from swathe.catalog import Catalog, this_host
from swathe.costs.cost_model import Costs
from tests.support import webdav_server

WHOLE = np.arange(64**3, dtype="f4").reshape(64, 64, 64)
CHUNK = 16**3 * 4
COSTS = Costs(0.02, 0.0, ((0, 0.021), (1_000_000, 0.06)), 2.5e7, 1e4, 8)
"""Requests cost much, so that the plan is the same however fast this machine is."""


@pytest.fixture(scope="module")
def ranges(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """What is asked of a server with a run: 4 x 4 x 4 chunks, in one shard and as subfiles."""
    folder, asked = tmp_path_factory.mktemp("sections"), list[str]()
    answer = webdav_server._Handler._get

    def get(handler: Any, content: bytes) -> Any:
        asked.append(f"{handler.path} {handler.headers['Range'] or ''}")
        return answer(handler, content)

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SWATHE_DATABASE", f"sqlite:///{folder / 'catalog.sqlite'}")
        patch.setattr("swathe.runs.definition.shards.CHUNK_BYTES", CHUNK)
        patch.setattr(webdav_server._Handler, "_get", get)
        (Path(folder) / "files").mkdir()
        with webdav_server.webdav(folder / "files") as dav:
            with Catalog.open() as catalog:
                url = dav.url.replace("http://", "dav://")
                catalog.add_store("far", url, "wan")
                spread = {"model": 0.1}
                catalog.put_profile(url, this_host(), COSTS.as_dict(), spread, datetime.now(UTC))
            with swathe.run("app", 0) as run:
                run.array("a", WHOLE.shape).write(0, WHOLE)
                run.array("b", WHOLE.shape, write="subfile").write(0, WHOLE)
            yield asked


@pytest.mark.parametrize(
    ("section", "most_requests", "most_chunks"),
    [
        (np.s_[:, 3, 3], 4, 4),
        (np.s_[::16, 5, ::2], 4, 16),  # the four chunks of a row follow each other
        (np.s_[5, ::3, 7], 4, 13),  # every fourth chunk: what lies between is read, too
    ],
)
def test_strided_sections_read_extents(
    ranges: list[str], section: Any, most_requests: int, most_chunks: int
) -> None:
    dump = swathe.open_run("app")["a"][0]
    assert dump[0, 0, 0] == 0  # metadata and index
    ranges.clear()
    np.testing.assert_array_equal(dump[section], WHOLE[section])
    assert 1 <= len(ranges) <= most_requests
    spans = [each.partition("bytes=")[2].split("-") for each in ranges]
    bounds = [tuple(map(int, each)) for each in spans]
    assert sum(last + 1 - first for first, last in bounds) <= most_chunks * CHUNK


def test_a_section_of_subfiles_reads_only_the_objects_that_it_touches(ranges: list[str]) -> None:
    dump = swathe.open_run("app")["b"][0]
    assert dump[0, 0, 0] == 0  # metadata
    ranges.clear()
    np.testing.assert_array_equal(dump[:, 3, 20:40], WHOLE[:, 3, 20:40])
    objects = {each.partition(" ")[0].partition("/c/")[2] for each in ranges}
    assert objects == {f"0/{row}/0/{column}" for row in range(4) for column in (1, 2)}
