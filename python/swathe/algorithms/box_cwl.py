"""Run a document of CWL inside the sandbox: `python -I -B box_cwl.py`.

`group_run.py` writes the call, `$SWATHE_IN/call.json`. `cwltool` of the operator's environment runs
the document without containers. Its files are then moved to `$SWATHE_OUT` under the names of the
outputs. This file imports nothing of Swathe.
"""

from __future__ import annotations

import importlib
import io
import json
import logging
import os
import re
import shutil
import sys
import zipfile
from pathlib import Path
from typing import Any

WORK = "cwl"
"""Folder of outputs until they are moved. No output has this name: each has a suffix."""
ZIP_TIME = (1980, 1, 1, 0, 0, 0)
"""Time of all members of a zip, as of archives of outputs: the same files are the same zip."""
PART = 1 << 20
PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,199}")
FLAGS = (
    *("--no-container", "--skip-schemas", "--no-doc-cache", "--disable-ga4gh-tool-registry"),
    *("--no-compute-checksum", "--disable-color", "--rm-tmpdir", "--move-outputs"),
)
END = re.compile(r"Final process status|\[[^\]]*\] (?:completed|Output is missing) ")
"""What cwltool says last, and which is no reason."""
STATUS = re.compile(r"\[[^\]]*\] (?:exited with status|was terminated by signal)")
"""How a tool ended, which is the reason whatever follows."""


class ReasonHandler(logging.Handler):
    """Handler that keeps why cwltool fails: how a tool ended, else its last warning or error."""

    def __init__(self) -> None:
        """Begin without a reason."""
        super().__init__(logging.WARNING)
        self.reason = "cwltool failed"

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the last line of a message."""
        text = record.getMessage().strip()
        if text and not END.match(text) and not STATUS.match(self.reason):
            self.reason = text.rpartition("\n")[2]


def main() -> int:
    """Run the document of a call; return the exit code."""
    folder, results = Path(os.environ["SWATHE_IN"]), Path(os.environ["SWATHE_OUT"])
    temporary = Path(os.environ["TMPDIR"])
    call = json.loads((folder / "call.json").read_bytes())
    source = json.loads((folder / call["source"]).read_bytes())
    document, order = temporary / "algorithm.cwl", temporary / "order.json"
    document.write_text(json.dumps(source["document"]))
    order.write_text(json.dumps(order_of(call, folder, source["lists"])))
    # Programs of the environment come first. Node.js may be barred from its settings.
    os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    os.environ["OPENSSL_CONF"] = os.devnull
    copy_instead_of_links()
    run_cwl = importlib.import_module("cwltool.main").main
    work, answer, handler = results / WORK, io.StringIO(), ReasonHandler()
    logging.getLogger("cwltool").addHandler(handler)
    fragment = f"#{source['main']}" if source["main"] else ""
    places = ["--outdir", f"{work}", "--tmpdir-prefix", f"{temporary}/cwl-"]
    places += ["--tmp-outdir-prefix", f"{results}/work-"]
    code = run_cwl([*FLAGS, *places, f"{document}{fragment}", str(order)], stdout=answer)
    if code:
        sys.stderr.write(f"{handler.reason}\n")
        return int(code)
    values = json.loads(answer.getvalue())
    keep_outputs(values, {name: results / file for name, file in call["outputs"].items()})
    return 0


def order_of(call: dict[str, Any], folder: Path, lists: list[str]) -> dict[str, Any]:
    """Return the input object: granules and files as objects of class File, and parameters."""
    order: dict[str, Any] = dict(call["parameters"])
    for name, granules in call["granules"].items():
        files = [file_of(folder / each["file"], each["id"]) for each in granules]
        order[name] = files if name in lists else files[0]
    return order | {name: file_of(folder / file) for name, file in call["files"].items()}


def file_of(path: Path, identifier: str = "") -> dict[str, str]:
    """Return the object of a file; a granule has the last part of its own id as its name."""
    name = re.split("[/:]", identifier)[-1]
    own = {"basename": name} if PLAIN_NAME.fullmatch(name) else {}
    return {"class": "File", "path": str(path), **own}


def copy_instead_of_links() -> None:
    """Let cwltool copy files where the sandbox refuses links, and leave modes as they are there."""
    link, change_mode = os.symlink, os.chmod

    def symlink(source: str, target: str, *arguments: Any, **others: Any) -> None:
        try:
            link(source, target, *arguments, **others)
        except PermissionError:
            if Path(source).is_dir():
                shutil.copytree(source, target, copy_function=shutil.copyfile)
            else:
                shutil.copyfile(source, target)

    def chmod(*arguments: Any, **others: Any) -> None:
        try:
            change_mode(*arguments, **others)
        except PermissionError as error:
            # It would only protect files of the run from the run itself.
            logging.getLogger("cwltool").info("mode not changed: %s", error)

    os.symlink, os.chmod = symlink, chmod  # type: ignore[assignment]


def keep_outputs(values: dict[str, Any], targets: dict[str, Path]) -> None:
    """Move the file of each output to its place; several files become a zip.

    Outputs may share files, so zips are written before files are moved.
    """
    files = {}
    for name, target in targets.items():
        value = values.get(name)
        if isinstance(value, dict) and value["class"] == "File":
            files[target] = value["path"]
        elif value:
            write_zip(value if isinstance(value, list) else [value], target)
    rest = [*files.values()]
    for target, path in files.items():
        rest.remove(path)
        if path in rest:
            shutil.copyfile(path, target)
        else:
            os.replace(path, target)


def write_zip(values: list[Any], target: Path) -> None:
    """Write the files of outputs of class File and Directory; without files there is no zip."""
    members: dict[str, Path] = {}
    for number, value in enumerate(values):
        path = Path(value["path"])
        home = path if len(values) == 1 and value["class"] == "Directory" else path.parent
        for file in [path] if value["class"] == "File" else sorted(path.rglob("*")):
            name = str(file.relative_to(home))
            if file.is_file():
                members[f"{number}-{name}" if name in members else name] = file
    if not members:
        return
    with zipfile.ZipFile(target, "w") as archive:
        for name, file in members.items():
            member = zipfile.ZipInfo(name, ZIP_TIME)
            member.compress_type, member.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            with file.open("rb") as source, archive.open(member, "w", force_zip64=True) as into:
                shutil.copyfileobj(source, into, PART)


if __name__ == "__main__":
    sys.exit(main())
