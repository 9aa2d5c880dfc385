"""Lines of ULM written by the collector and the host monitor themselves."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

BARE = re.compile(r"""[!#-<>-\[\]-~]+""")
ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}

Value = str | int | float


def line(
    time_ns: int, host: str, name: str, fields: Mapping[str, Value], *, prog: str = "swathe"
) -> str:
    """Return a point as a line without the line end. LVL is `Error` if RESULT is `error`."""
    seconds, rest_ns = divmod(time_ns, 1_000_000_000)
    date = f"{datetime.fromtimestamp(seconds, UTC):%Y%m%d%H%M%S}.{rest_ns // 1000:06}"
    level = "Error" if fields.get("RESULT") == "error" else "Usage"
    words = {"DATE": date, "HOST": host, "PROG": prog, "LVL": level, "NL.EVNT": name, **fields}
    return " ".join(f"{key}={_written(value)}" for key, value in words.items())


def _written(value: Value) -> str:
    text = f"{value:.9f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
    if BARE.fullmatch(text):
        return text
    return '"' + "".join(ESCAPES.get(each) or _escaped(each) for each in text) + '"'


def _escaped(each: str) -> str:
    if each < " " or each == "\x7f":
        return f"\\x{ord(each):02x}"
    return each
