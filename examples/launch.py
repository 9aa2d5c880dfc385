"""Start a program on ranks: processes of MPI, threads, or this process alone."""

from __future__ import annotations

import argparse
import sys
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from swathe.core.errors import SwatheError
from swathe.runs.writing.ranks import OneRank, Ranks, ThreadRanks, ranks_of

T = TypeVar("T")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ranks to a command line."""
    ranks = parser.add_mutually_exclusive_group()
    ranks.add_argument("--ranks", type=int, default=1, help="number of threads (default: 1)")
    ranks.add_argument("--mpi", action="store_true", help="ranks are those of mpiexec")


def launch(program: Callable[[Ranks], T], options: argparse.Namespace) -> list[T]:
    """Run a program on all ranks; return their results: of MPI, that of this process.

    Args:
        program: what each rank does.
        options: options of the command line, as of `add_options`.

    Raises:
        OptionError: If the number of threads is invalid.
        Exception: What a thread raises; the others end, too.
    """
    if options.mpi:
        return [_run_process(program)]
    if options.ranks == 1:
        return [program(OneRank())]
    return _run_threads(program, options.ranks)


def _run_process(program: Callable[[Ranks], T]) -> T:
    from mpi4py import MPI

    try:
        return program(ranks_of(MPI.COMM_WORLD))  # a run closes the ranks at its end
    except Exception as error:
        text = str(error) if isinstance(error, SwatheError) else traceback.format_exc()
        print(f"rank {MPI.COMM_WORLD.rank}: {text}", file=sys.stderr, flush=True)
        # The others would wait for this one.
        MPI.COMM_WORLD.Abort(1)
        raise


def _run_threads(program: Callable[[Ranks], T], count: int) -> list[T]:
    def run(ranks: ThreadRanks) -> T:
        try:
            return program(ranks)
        except BaseException:
            ranks.abort()
            raise

    group = ThreadRanks.make(count)
    with ThreadPoolExecutor(count) as pool:
        futures = [pool.submit(run, each) for each in group]
    errors: list[Any] = [future.exception() for future in futures]
    causes = [each for each in errors if each is not None]
    causes.sort(key=lambda each: isinstance(each, threading.BrokenBarrierError))
    if causes:
        raise causes[0]
    return [future.result() for future in futures]
