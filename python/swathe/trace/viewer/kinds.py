"""Kinds of lifelines, and the clocks that they are drawn with."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

Kind: TypeAlias = Literal["target", "object", "request", "lifeline", "portal", "job", "stage"]
KINDS: tuple[Kind, ...] = get_args(Kind)
Clocks: TypeAlias = Literal["aligned", "written"]
"""Clocks of the events: aligned to that of the collector, or as they were written."""
