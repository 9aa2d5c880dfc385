"""A run reads from the objects that its prediction opened; they are not opened again."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from astropy.io import fits

import swathe
from swathe.catalog import Catalog
from swathe.costs import predict_list
from tests.support import servers
from tests.support.fits_frames import contents, noise

pytestmark = pytest.mark.more


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("SWATHE_DATABASE", f"sqlite:///{tmp_path}/catalog.sqlite")
    monkeypatch.setenv("SWATHE_INDEX_DIR", str(tmp_path / "index"))
    (tmp_path / "nginx").mkdir()
    with servers.nginx(tmp_path / "nginx") as running:
        yield running


def boxes(url: str, count: int) -> dict[str, list[Any]]:
    numbers = {"x0": 10, "y0": 20, "width": 50, "height": 40}
    columns: dict[str, list[Any]] = {name: [value] * count for name, value in numbers.items()}
    return {"file": [url] * count, **columns}


@pytest.mark.parametrize(("kind", "most"), [("fit", 2), ("fit.gz", 2), ("fit.fz", 3)])
def test_an_object_is_opened_once(
    server: servers.FileServer, tmp_path: Path, kind: str, most: int
) -> None:
    image = noise(5, (600, 700))
    (server.folder / f"a.{kind}").write_bytes(contents(image, kind))
    server.requests()
    manifest = swathe.cut_many(boxes(f"{server.url}/a.{kind}", 3), tmp_path / "out", progress=False)
    assert manifest.meta["ok"] == 3
    requests = server.requests()
    first_bytes = [each for each in requests if each.range.startswith("bytes=0-")]
    assert len(first_bytes) == 1
    assert len(requests) <= most
    # The header of a plain image is read for the prediction, and stays in the index.
    assert manifest.meta["requests"] == len(requests) - (kind != "fit.gz")
    for path in manifest["path"]:
        assert np.array_equal(fits.getdata(tmp_path / "out" / path), image[20:60, 10:60])


@pytest.mark.parametrize("kind", ["fit", "fit.gz"])
def test_an_object_that_changes_after_the_prediction_is_never_mixed(
    server: servers.FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    old, new = noise(5, (600, 700)), noise(6, (600, 700))
    path = server.folder / f"a.{kind}"
    path.write_bytes(contents(old, kind))
    predict = predict_list.predict_job

    def predict_and_replace(*arguments: Any, **options: Any) -> Any:
        prediction = predict(*arguments, **options)
        other = path.with_suffix(".new")
        other.write_bytes(contents(new, kind))
        os.utime(other, (time.time() + 5, time.time() + 5))
        other.replace(path)
        return prediction

    monkeypatch.setattr(
        sys.modules["swathe.costs.predict_list"], "predict_job", predict_and_replace
    )
    manifest = swathe.cut_many(boxes(f"{server.url}/a.{kind}", 3), tmp_path / "out", progress=False)
    for row in manifest:
        if row["status"] == "ok":
            pixels = fits.getdata(tmp_path / "out" / row["path"])
            assert np.array_equal(pixels, new[20:60, 10:60])
        else:
            assert "changed" in row["reason"]


def test_a_run_records_opening_as_reading(server: servers.FileServer, tmp_path: Path) -> None:
    """The time of the list and the plan must not grow with the distance of a server."""
    (server.folder / "a.fit").write_bytes(contents(noise(5, (600, 700)), "fit"))
    with servers.proxy(server.url, rtt_ms=300) as proxy:
        swathe.cut_many(boxes(f"{proxy.url}/a.fit", 3), tmp_path / "out", progress=False)
    with Catalog.open() as catalog:
        (outcome,) = catalog.outcomes()
    assert outcome.engine_s > 0.3
    assert outcome.before_s < outcome.actual_s - outcome.engine_s + 1e-6
