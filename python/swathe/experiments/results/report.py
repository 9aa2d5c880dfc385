"""Output folder of an experiment; its report is a page that needs no other file."""

from __future__ import annotations

import html
import io
import json
import math
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from swathe.core.errors import OutputError, SettingsError
from swathe.core.outputs import check_new, make_folder, write_file
from swathe.costs.plots import save, svg_text
from swathe.experiments.results.result import REPORT, RESULTS, SAMPLES, read_result, samples_table

if TYPE_CHECKING:
    import os

    from astropy.table import Table

    from swathe.experiments.results.result import Study

STYLE = """
body{font:15px/1.45 system-ui,sans-serif;margin:2em auto;max-width:80em;padding:0 1em;color:#222}
h1{font-size:1.5em}h2{font-size:1.15em;margin-top:2em}svg{max-width:100%;height:auto}
table{border-collapse:collapse;font-size:13px}.wide{overflow-x:auto}
th,td{padding:.2em .5em;text-align:right;border-bottom:1px solid #ddd;white-space:nowrap}
th:first-child,td:first-child,td.text{text-align:left}
thead th{border-bottom:2px solid #888;white-space:normal;vertical-align:bottom}
dl{display:grid;grid-template-columns:max-content auto;gap:.1em 1em;font-size:13px}
dt{color:#666}dd{margin:0;overflow-wrap:anywhere}
@media(prefers-color-scheme:dark){body{background:#1b1b1b;color:#ddd}svg{background:#fff}
th,td{border-color:#444}}
"""


def ready(folder: str | os.PathLike[str], kind: str, *, overwrite: bool = False) -> None:
    """Create the folder before the measurement, or check that it can take the results.

    Raises:
        OutputExistsError: If there are results already, and `overwrite` is false.
        OutputError: If it is not writable.
        SettingsError: If it has results of another experiment.
    """
    path = make_folder(folder)
    try:
        with tempfile.TemporaryFile(dir=path) as file:
            file.write(b"results")
    except OSError as error:
        raise OutputError(f"{path}: results cannot be written there: {error}") from error
    if (path / RESULTS).exists() and (other := read_result(path)[0].meta["experiment"]) != kind:
        raise SettingsError(f"{path}: expected results of {kind!r}, found {other!r}")
    check_new(path, (RESULTS, SAMPLES, REPORT), overwrite=overwrite)


def keep(study: Study, folder: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
    """Write tables, the report, and figures as PNG and SVG; return the folder.

    Raises:
        OutputExistsError: If a file exists, and `overwrite` is false.
        OutputError: If they cannot be written.
    """
    path = make_folder(folder)
    study.table.meta = study.meta
    texts = {RESULTS: _ecsv(study.table), SAMPLES: _ecsv(samples_table(study.samples))}
    for name, text in (texts | {REPORT: report(study)}).items():
        _write(path / name, text, overwrite)
    for name, drawing in study.figures.items():
        for suffix in (".png", ".svg"):
            save(drawing, path / f"{name}{suffix}", overwrite=overwrite)
    return path


def _write(path: Path, text: str, overwrite: bool) -> None:
    write_file(path, lambda file: file.write(text.encode()), overwrite=overwrite)


def _ecsv(table: Table) -> str:
    file = io.StringIO()
    table.write(file, format="ascii.ecsv")
    return file.getvalue()


def report(study: Study) -> str:
    """Return the page: findings, figures, tables, settings, circumstances."""
    parts = [_list(study.sentences)]
    parts += [f"<figure>{svg_text(drawing)}</figure>" for drawing in study.figures.values()]
    parts += ["<h2>Results</h2>", html_table(study.table)]
    for title, table in study.more.items():
        parts += [f"<h2>{html.escape(title)}</h2>", html_table(table)]
    if study.notes:
        parts += ["<h2>Notes</h2>", _list(study.notes)]
    parts += ["<h2>Settings</h2>", _facts(study.settings)]
    parts += ["<h2>Measured with</h2>", _facts(study.circumstances)]
    title = html.escape(study.title)
    body = "\n".join(filter(None, parts))
    return (
        f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>{title}</title>\n'
        '<meta name="viewport" content="width=device-width,initial-scale=1">\n'
        f"<style>{STYLE}</style>\n<h1>{title}</h1>\n{body}\n</html>\n"
    )


def html_table(table: Table) -> str:
    """Return a table as HTML, units with the names of columns."""
    head = "".join(f"<th>{html.escape(title)}</th>" for title in titles(table))
    rows = "".join(f"<tr>{''.join(map(_cell, row))}</tr>\n" for row in table.as_array().tolist())
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead>\n{rows}</table></div>'


def titles(table: Table) -> list[str]:
    """Return the names of columns, with their units."""
    units = (table[name].unit for name in table.colnames)
    columns = zip(table.colnames, units, strict=True)
    return [name.replace("_", " ") + (f", {unit}" if unit else "") for name, unit in columns]


def _cell(value: Any) -> str:
    kind = ' class="text"' if isinstance(value, str) else ""
    return f"<td{kind}>{html.escape(number(value))}</td>"


def number(value: Any) -> str:
    """Return a value of a table for readers."""
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, float):
        if math.isnan(value):
            return "-"
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    if isinstance(value, int):
        return f"{value:,}"
    return str(value)


def _list(texts: list[str]) -> str:
    return f"<ul>{''.join(f'<li>{html.escape(text)}</li>' for text in texts)}</ul>" if texts else ""


def _facts(facts: dict[str, Any]) -> str:
    def value_text(value: Any) -> str:
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

    rows = (
        f"<dt>{html.escape(name)}</dt><dd>{html.escape(value_text(value))}</dd>"
        for name, value in facts.items()
    )
    return f"<dl>{''.join(rows)}</dl>"
