"""The rest of the tree of a cut as ASDF: texts, numbers and lists of the source, as YAML text.

asdf takes a third of a millisecond for each node. So a text stands for each part of the tree, and
is replaced in the file.
"""

from __future__ import annotations

import json
import math
import re
import secrets
from json.encoder import encode_basestring_ascii
from typing import Any

LONGEST_KEY = 100
"""Characters of a key that needs no mark before it; parsers take up to 1024."""
BEYOND = re.compile(r"\\ud([89ab][0-9a-f]{2})\\ud([c-f][0-9a-f]{2})")
"""A character beyond 16 bits, as JSON writes it; YAML does not join its halves."""


class Rest:
    """Parts of a tree that are written as text."""

    def __init__(self) -> None:
        """Begin without parts."""
        self._mark = f"rest-{secrets.token_hex(16)}"
        self._texts: list[bytes] = []

    def add(self, tree: dict[Any, Any], node: Any, own_keys: frozenset[str]) -> None:
        """Add the members of a node to a tree, without those that it has; mappings are joined.

        A list that has the array of the cut is a mapping of its numbers.

        Args:
            tree: the tree.
            node: the node, as `readers.asdf.rest` has it.
            own_keys: keys that are left out.
        """
        members = node.get("pairs", ()) if isinstance(node, dict) else ()
        for key, value in enumerate(node) if isinstance(node, list) else members:
            name = str(key)
            if name in own_keys or value is None:
                continue
            if name not in tree:
                tree[key] = self._part(value)
            elif isinstance(tree[name], dict):
                self.add(tree[name], value, frozenset())

    def fill(self, content: bytes) -> bytes:
        """Return a file, written without an index of blocks, with all parts."""
        pattern = re.compile(self._mark.encode() + rb"-(\d+)-")
        return pattern.sub(lambda match: self._texts[int(match[1])], content)

    def _part(self, value: Any) -> str:
        self._texts.append("".join(_words(value)).encode())
        return f"{self._mark}-{len(self._texts) - 1}-"


def _words(node: Any) -> list[str]:
    """Return the pieces of a node in the flow style of YAML."""
    words: list[str] = []

    def write(node: Any) -> None:
        if isinstance(node, dict) and "timestamp" in node:
            words.append(node["timestamp"])
        elif isinstance(node, dict):
            words.append("{")
            for number, (key, value) in enumerate(node["pairs"]):
                text = _scalar(key)
                words.append(", " if number else "")
                words.append(f"? {text} : " if len(text) > LONGEST_KEY else f"{text}: ")
                write(value)
            words.append("}")
        elif isinstance(node, list):
            words.append("[")
            for number, value in enumerate(node):
                words.append(", " if number else "")
                write(value)
            words.append("]")
        else:
            words.append(_scalar(node))

    write(node)
    return words


def _scalar(value: Any) -> str:
    if isinstance(value, float):
        if not math.isfinite(value):
            return ".nan" if math.isnan(value) else f"{'-' * (value < 0)}.inf"
        text = repr(value)
        return text if "." in text else text.replace("e", ".0e")
    if isinstance(value, str):
        text = encode_basestring_ascii(value)
        return BEYOND.sub(_join_halves, text) if "\\ud" in text else text
    return json.dumps(value)


def _join_halves(match: re.Match[str]) -> str:
    high, low = (int(f"d{match[part]}", 16) for part in (1, 2))
    return f"\\U{0x10000 + ((high - 0xD800) << 10) + low - 0xDC00:08x}"
