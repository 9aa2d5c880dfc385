"""A picture of a volume by all ranks: each casts rays through its block, then they composite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from swathe.core.errors import OptionError
from swathe.operations.ray_casting import CLEAR, Block, Floats, TransferFunction, View, cast
from swathe.runs.definition.pattern import Division, Pattern

if TYPE_CHECKING:
    from swathe.runs.writing.ranks import Ranks


def render(volume: Any, view: View, transfer: TransferFunction, ranks: Ranks) -> Floats | None:
    """Return the picture of a volume; all ranks call it.

    Args:
        volume: an array of bytes of three axes; each rank reads its block of it.
        view: where the rays go.
        transfer: colours and opacity.
        ranks: who shares the work.

    Returns:
        Red, green and blue from 0 to 1, of shape (pixels, pixels, 3), the top first; on ranks other
        than the first `None`.

    Raises:
        OptionError: If the volume is none.
        NotFoundError, AccessError, SourceError, FormatError: If it cannot be read.
    """
    if volume.ndim != 3 or volume.dtype != np.uint8:
        raise OptionError(
            f"volume: expected three axes of bytes (u1), found {volume.shape}, {volume.dtype}"
        )
    division = Pattern.parse("BBB", 3).division(volume.shape, ranks.size)
    block = _read_block(volume, division, ranks.rank)
    picture = np.zeros((view.pixels, view.pixels, 4))
    picture[..., 3] = CLEAR
    if block is not None:
        picture = cast(block, view, transfer)
    order = visibility_order(division, view.axes()[0])
    strips = ranks.gather(composite_strip(_exchange_strips(picture, ranks), order))
    return np.concatenate(strips)[::-1, :, :3] if ranks.rank == 0 else None


def composite_strip(strips: Sequence[Floats], order: Sequence[int]) -> Floats:
    """Return a strip of the picture from those of all blocks.

    Args:
        strips: that of each rank, with red, green, blue and the light that passes.
        order: the ranks, the nearest first.
    """
    result = np.zeros_like(strips[0])
    result[..., 3] = CLEAR
    for rank in order:
        result[..., :3] += result[..., 3:] * strips[rank][..., :3]
        result[..., 3] *= strips[rank][..., 3]
    return result


def visibility_order(division: Division, away: Floats) -> list[int]:
    """Return the ranks such that none hides one before it.

    Args:
        division: the blocks.
        away: direction of the rays.
    """
    places = [np.unravel_index(rank, division.grid) for rank in range(np.prod(division.grid))]
    signs = np.where(away < 0, -1, 1)
    return sorted(range(len(places)), key=lambda rank: tuple(signs * places[rank]))


def _read_block(volume: Any, division: Division, rank: int) -> Block | None:
    """Return the block of a rank with a voxel around it, where the volume goes on."""
    if 0 in division.block_shape(rank):
        return None
    spans = [spans[0] for spans in division.spans(rank)]
    origin = tuple(max(span.start - 1, 0) for span in spans)
    ends = [min(span.stop + 1, length) for span, length in zip(spans, volume.shape, strict=True)]
    index = tuple(slice(*pair) for pair in zip(origin, ends, strict=True))
    return Block(
        np.asarray(volume[index]), origin, tuple(each.start for each in spans),
        tuple(each.stop for each in spans),
    )  # fmt: skip


def _exchange_strips(picture: Floats, ranks: Ranks) -> list[Floats]:
    """Send each rank its strip of this rank's picture; return this rank's strip of all pictures."""
    strips = np.array_split(picture, ranks.size)
    own = strips[ranks.rank]
    outgoing = np.ascontiguousarray(picture).reshape(-1).view(np.uint8)
    sizes = [strip.nbytes for strip in strips]
    incoming = ranks.exchange(outgoing, sizes, [own.nbytes] * ranks.size)
    return list(incoming.view(np.float64).reshape(ranks.size, *own.shape))
