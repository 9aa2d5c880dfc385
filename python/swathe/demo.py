"""What `make run` shows: a sample survey, two thousand cuts of all four kinds, their rates.

With `--files` it cuts from the middle of the user's own images instead.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import swathe
from swathe.errors import SwatheError
from swathe.preview import contact_sheet
from swathe.progress import progress_bar
from swathe.sample import make_sample

if TYPE_CHECKING:
    from astropy.table import Table

STAGES = ("open", "read", "decode", "assemble", "hash", "write")
SHEET_ROWS = 48


def main() -> int:
    """Run the demonstration; gives the exit code."""
    parser = argparse.ArgumentParser(prog="make run ARGS=...", description=__doc__)
    parser.add_argument("--frames", type=int, default=60, help="frames of the sample (60)")
    parser.add_argument("--targets", type=int, default=2000, help="targets of the sample (2000)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the sample (1)")
    parser.add_argument("--threads", type=int, default=None, help="threads (all cores)")
    parser.add_argument("--build", type=Path, default=Path("build"), help="where it all goes")
    parser.add_argument("--size", type=int, default=200, help="side of cuts from --files, pixels")
    parser.add_argument("--files", nargs="+", default=None, help="cut from these instead")
    arguments = parser.parse_args()
    try:
        if arguments.files:
            return cut_files(arguments.files, arguments.size, arguments.build / "cutouts")
        return cut_sample(arguments)
    except SwatheError as error:
        print(f"swathe: {error}", file=sys.stderr)
        return 1


def cut_sample(arguments: argparse.Namespace) -> int:
    """Cut the sample's targets kind by kind, show what it cost, and draw the contact sheet."""
    from astropy.table import Table, vstack

    folder = arguments.build / "sample"
    print(f"sample survey: {arguments.frames} frames, seed {arguments.seed}, in {folder}/")
    with progress_bar("drawing", True, arguments.frames) as show:
        path = make_sample(
            folder,
            arguments.frames,
            arguments.seed,
            arguments.targets,
            lambda done, _frames: show(done),
        )
    targets = Table.read(path, format="ascii.csv")
    targets["file"] = [str(folder / name) for name in targets["file"]]

    print(f"\n{'kind':6} {'ok':>5} {'seconds':>8} {'cuts/s':>8}   milliseconds per cut, by stage")
    print(f"{'':6} {'':5} {'':8} {'':8}   " + "".join(f"{stage:>9}" for stage in STAGES))
    manifests = []
    for kind in ("fit", "gz", "bz2", "fz"):
        rows = targets[[name.endswith(f".{kind}") for name in targets["file"]]]
        output = arguments.build / "cutouts" / kind
        shutil.rmtree(output, ignore_errors=True)
        manifest = swathe.cut_many(rows, output, threads=arguments.threads)
        print(rates(kind, manifest))
        manifest["path"] = [str(output / name) if name else "" for name in manifest["path"]]
        manifest.meta.clear()
        manifests.append(manifest)
    everything = vstack(manifests)
    failed = everything[everything["status"] != "ok"]
    for row in failed[:5]:
        print(f"  {row['id']}: {row['status']}: {row['reason']}")

    good = everything[everything["status"] == "ok"]
    sheet = arguments.build / "contact-sheet.png"
    draw_sheet(good, sheet)
    print(f"\n{len(good)} cutouts in {arguments.build / 'cutouts'}/, some of them in {sheet}")
    return 1 if len(failed) else 0


def rates(kind: str, manifest: Table) -> str:
    """One line: what a batch cost."""
    meta = manifest.meta
    cuts = max(1, meta["ok"])
    stages = "".join(f"{1e3 * meta[f'{stage}_s'] / cuts:9.3f}" for stage in STAGES)
    wall = meta["wall_s"]
    return f"{kind:6} {meta['ok']:5} {wall:8.3f} {meta['ok'] / wall:8.0f}   {stages}"


def draw_sheet(manifest: Table, path: Path) -> None:
    """Draw some of the cutouts, evenly chosen, on one sheet."""
    step = max(1, len(manifest) // SHEET_ROWS)
    chosen = manifest[::step][:SHEET_ROWS]
    cutouts = [swathe.open(row["path"]).image().section[:, :] for row in chosen]
    captions = [f"{row['id']} {Path(row['source']).suffix}" for row in chosen]
    contact_sheet(cutouts, captions).save(path)


def cut_files(files: list[str], side: int, folder: Path) -> int:
    """Cut the middle of every image of the user's files; show each, go on after errors."""
    folder.mkdir(parents=True, exist_ok=True)
    failed = 0
    taken: set[Path] = set()
    for name in files:
        try:
            for image in swathe.open(name):
                if len(image.shape) < 2:
                    continue
                height, width = image.shape[-2:]
                stem = Path(name).name.split(".")[0]
                path, copies = folder / f"{stem}-{image.index}.fits", 1
                while path in taken:
                    copies += 1
                    path = folder / f"{stem}-{image.index}-{copies}.fits"
                taken.add(path)
                box = ((width - side) // 2, (height - side) // 2, side, side)
                cutout = image.cut(box)
                cutout.write(path)
                cutout.write(path.with_suffix(".png"))
                print(f"{path}: {cutout}")
        except SwatheError as error:
            failed += 1
            print(f"swathe: {error}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
