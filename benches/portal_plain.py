"""What the portal is compared with: cuts by FastAPI and astropy, as one writes them in an hour.

    python benches/portal_plain.py FOLDER

Prints the URL it serves at.
"""

from __future__ import annotations

import io
import socket
import sys
from pathlib import Path

import uvicorn
from astropy.io import fits
from astropy.nddata import Cutout2D
from astropy.wcs import WCS
from fastapi import FastAPI, Response


def make(folder: Path) -> FastAPI:
    """Make the application."""
    app = FastAPI()

    @app.get("/cut")
    def cut(name: str, x: float, y: float, size: int) -> Response:
        with fits.open(folder / Path(name).name) as hdus:
            header = hdus[0].header
            piece = Cutout2D(hdus[0].section, (x, y), size, wcs=WCS(header), copy=True)
            header.update(piece.wcs.to_header())
            file = io.BytesIO()
            fits.PrimaryHDU(piece.data, header).writeto(file)
        return Response(file.getvalue(), media_type="application/fits")

    return app


if __name__ == "__main__":
    listener = socket.create_server(("127.0.0.1", 0), backlog=2048)
    print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    config = uvicorn.Config(
        make(Path(sys.argv[1])), log_level="warning", access_log=False, timeout_keep_alive=120
    )
    uvicorn.Server(config).run(sockets=[listener])
