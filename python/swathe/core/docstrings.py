"""What docstrings in Google style say of a class and its attributes."""

from __future__ import annotations

import inspect
import re


def summary_of(kind: type) -> str:
    """Return the first paragraph of the docstring of a class."""
    return (inspect.getdoc(kind) or "").split("\n\n")[0].replace("\n", " ")


def attributes_of(kind: type) -> dict[str, str]:
    """Return the descriptions of attributes in the docstring of a class."""
    _, _, text = (inspect.getdoc(kind) or "").partition("Attributes:\n")
    texts: dict[str, str] = {}
    name = ""
    for line in text.splitlines():
        if begin := re.fullmatch(r"    (\w+): (.*)", line):
            name = begin[1]
            texts[name] = begin[2]
        elif name and line.startswith("     "):
            texts[name] += " " + line.strip()
    return texts
