"""Requests that share a connection of HTTP/2, to real servers over TLS, 20 ms away."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from astropy.io import fits

from tests.support import servers

pytestmark = pytest.mark.more

# So wide that to read through to the next row takes longer than requests do on any machine.
SHAPE = (1100, 20_000)
ROWS_BYTES = 100 * 100 * 2
BYTES_PER_S = 25_000_000
"""Of the line; the program says so of its streams."""
NGINX = """\
daemon off;
user root;
pid {place}/nginx.pid;
worker_processes 1;
events {{ worker_connections 512; }}
http {{
    access_log off;
    client_body_temp_path {place}/body;
    proxy_temp_path {place}/proxy;
    fastcgi_temp_path {place}/fastcgi;
    uwsgi_temp_path {place}/uwsgi;
    scgi_temp_path {place}/scgi;
    server {{
        listen 127.0.0.1:{port} ssl{http2};
        ssl_certificate {place}/server.pem;
        ssl_certificate_key {place}/server.key;
        root {folder};
    }}
}}
"""
CADDY = """\
{{
    admin off
    auto_https off
}}
https://127.0.0.1:{port} {{
    tls {place}/server.pem {place}/server.key
    root * {folder}
    file_server
}}
"""
# A process of its own: certificates are read when it begins.
PROGRAM = """
import json, sys, tempfile, time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
import numpy as np
from astropy.io import fits
import swathe
from swathe import _swathe
from swathe.catalog import Catalog, this_host
from swathe.costs.cost_model import Costs
from swathe.costs.probing.probe_multiplexed import study_multiplexing
from swathe.costs.probing.probe_vectors import study_vectors

url, frame = sys.argv[1:]
image = fits.getdata(frame)
name = f"{url}/frame.fits"
source = _swathe.open_source(name)
costs = Costs(0.06, 0.0, ((0, 0.021), (1_000_000, 0.06)), 2.5e7, 1e4, 8)
shared = study_multiplexing(source, costs, quick=False)
vectors = study_vectors(source, quick=False)
learned, ranges = shared.costs(), vectors.multi_range(costs)
report = {"notes": shared.notes(costs), "costs": costs.as_dict(), "ways": {}}
report["learned"] = None if learned is None else vars(learned)
ways = {"gaps": (None, None), "multi-range": (ranges, None), "multiplexed": (None, learned)}
with Catalog.open() as catalog:
    catalog.add_store("far", url)
    for way, (multi_range, multiplexed) in ways.items():
        profile = replace(costs, multi_range=multi_range, multiplexed=multiplexed).as_dict()
        catalog.put_profile(url, this_host(), profile, {"model": 0.1}, datetime.now(UTC))
        runs = []
        for turn in range(6):
            targets = {"file": ["far:frame.fits"], "x0": [700], "y0": [turn * 200],
                       "width": [100], "height": [100]}
            load = swathe.predict(targets).explained[0]["plans"][0]["load"]
            folder = Path(tempfile.mkdtemp())
            began = time.perf_counter()
            meta = swathe.cut_many(targets, folder, progress=False).meta
            runs.append((time.perf_counter() - began, meta["bytes_moved"], meta["requests"]))
            (cut,) = folder.glob("*.fits")
            box = image[turn * 200 : turn * 200 + 100, 700:800]
            np.testing.assert_array_equal(fits.getdata(cut), box)
        seconds, moved, requests = sorted(runs[2:])[1]
        report["ways"][way] = dict(load=load, seconds=seconds, bytes=moved, requests=requests)
print(json.dumps(report))
"""


def certify(place: Path) -> None:
    """Make an authority and the certificate of a server on this machine."""
    new = ["openssl", "req", "-newkey", "rsa:2048", "-nodes"]
    authority = ["-x509", "-days", "2", "-subj", "/CN=authority"]
    files = ["-keyout", str(place / "ca.key"), "-out", str(place / "ca.pem")]
    subprocess.run([*new, *authority, *files], check=True, capture_output=True)
    files = ["-keyout", str(place / "server.key"), "-out", str(place / "server.csr")]
    subprocess.run([*new, "-subj", "/CN=server", *files], check=True, capture_output=True)
    (place / "names").write_text("subjectAltName=IP:127.0.0.1\nbasicConstraints=CA:FALSE\n")
    sign = ["openssl", "x509", "-req", "-in", str(place / "server.csr"), "-days", "2"]
    sign += ["-CA", str(place / "ca.pem"), "-CAkey", str(place / "ca.key"), "-CAcreateserial"]
    sign += ["-extfile", str(place / "names"), "-out", str(place / "server.pem")]
    subprocess.run(sign, check=True, capture_output=True)


@contextlib.contextmanager
def server(name: str, place: Path, folder: Path) -> Iterator[str]:
    """Run a server over a folder; gives its URL."""
    program = shutil.which("caddy" if name == "caddy" else "nginx", path="/usr/sbin:/usr/bin")
    program = program or shutil.which("caddy" if name == "caddy" else "nginx")
    if program is None:
        pytest.skip(f"{name} is not installed")
    port, config = servers.free_port(), place / "server.conf"
    http2 = " http2" * (name == "nginx")
    text = CADDY if name == "caddy" else NGINX
    config.write_text(text.format(place=place, folder=folder, port=port, http2=http2))
    command = [program, "-e", str(place / "error.log"), "-c", str(config)]
    if name == "caddy":
        command = [program, "run", "--adapter", "caddyfile", "--config", str(config)]
    with servers.run_server(command, place, port):
        yield f"https://127.0.0.1:{port}"


@pytest.mark.parametrize("name", ["nginx", "caddy", "nginx without HTTP/2"])
def test_a_cut_shares_one_connection_where_the_server_speaks_http2(
    name: str, tmp_path: Path
) -> None:
    place, folder = tmp_path / "server", tmp_path / "www"
    place.mkdir()
    folder.mkdir()
    certify(place)
    image = np.random.default_rng(1).integers(0, 30_000, SHAPE, np.int16)
    fits.writeto(folder / "frame.fits", image)
    os.utime(folder / "frame.fits", (1e9, 1e9))
    environment = {
        **os.environ,
        "SSL_CERT_FILE": str(place / "ca.pem"),
        "SWATHE_DATABASE": f"sqlite:///{tmp_path}/catalog.sqlite",
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }
    with (
        server(name, place, folder) as url,
        servers.proxy(url, rtt_ms=20, shared_bytes_per_s=BYTES_PER_S) as far,
    ):
        command = [sys.executable, "-c", PROGRAM, far.url, str(folder / "frame.fits")]
        run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    report = json.loads(run.stdout.splitlines()[-1])
    print(json.dumps(report))  # noqa: T201
    way = report["ways"]["multiplexed"]
    if name == "nginx without HTTP/2":
        assert report["learned"] is None
        assert report["notes"][0].startswith("HTTP/2 is not used: ")
        assert not way["load"]["multiplexed"]
        return
    assert report["learned"]["requests"] >= 50
    assert report["learned"]["request_s"] < 1e-3
    assert (way["load"]["multiplexed"], way["load"]["requests"]) == (True, 100)
    assert (way["bytes"], way["requests"]) == (ROWS_BYTES, 100)
    assert report["ways"]["gaps"]["bytes"] > 5 * ROWS_BYTES
