"""Run `swathe-sandbox`, the program that confines others, and read its answers."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from swathe.core.errors import (
    LimitError,
    OptionError,
    SandboxBusyError,
    SandboxError,
    SandboxUnavailableError,
)
from swathe.sandbox.report import Report, SandboxCheck
from swathe.sandbox.request import Request, UserIds

PROGRAM = Path(__file__).parent / "swathe-sandbox"
"""Built with the native module, and part of the wheel."""
LONGEST_ANSWER = 64 << 20
"""Size limit of an answer, in bytes: the logs and a line for each output."""
LOOK_S = 0.1
"""Interval at which a run checks whether it was cancelled, in seconds."""
GRACE_S = 30.0
"""Time for starting and tidying up, beside the time limit of the program, in seconds."""
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}


def run(
    request: Request, collect: str | Path | None = None, is_gone: Callable[[], bool] | None = None
) -> Report:
    """Run a program in a sandbox and return what became of it.

    Nothing of it remains: no process, no mount, no file but the outputs that were collected, also
    if this process is killed in the meantime.

    Args:
        request: what to run.
        collect: folder into which its outputs are copied; it exists. Not needed without outputs.
        is_gone: asked every 0.1 s; if true, the program is killed.

    Raises:
        OptionError: If the request is invalid.
        SandboxUnavailableError: If this machine cannot confine programs.
        SandboxBusyError: If all user ids for programs are in use.
        SandboxError: If the sandbox failed, which is no fault of the program.
        LimitError: If the run was cancelled.
    """
    call = json.dumps(request.to_json(collect)).encode() + b"\n"
    numbers = [each.descriptor for each in request.inputs if each.descriptor is not None]
    wall_s = request.limits.wall_s
    answer = _answer(["run", "--leash"], call, numbers, wall_s + GRACE_S, is_gone)
    if answer.get("status") == "XX":
        kinds = {
            "request": OptionError,
            "unavailable": SandboxUnavailableError,
            "busy": SandboxBusyError,
        }
        raise kinds.get(answer.get("reason", ""), SandboxError)(answer["message"])
    return Report.from_json(answer)


def check(users: UserIds | None = None) -> SandboxCheck:
    """Try each kind of sandbox on this machine, and return which ones hold.

    Args:
        users: user ids for programs, if this process is root.

    Raises:
        SandboxError: If the check itself failed.
    """
    words = ["check"] if users is None else ["check", "--users", f"{users.first}:{users.count}"]
    return SandboxCheck.from_json(_answer(words, b"", (), GRACE_S, None))


def _answer(
    words: Sequence[str],
    call: bytes,
    descriptors: Sequence[int],
    longest_s: float,
    is_gone: Callable[[], bool] | None,
) -> dict[str, Any]:
    """Return what the program answers. Its standard input stays open: closing it ends the job."""
    if not PROGRAM.is_file():
        raise SandboxUnavailableError(
            f"{PROGRAM}: expected the program that confines others, found none; build it with "
            "`make`, or install a wheel for Linux"
        )
    try:
        process = subprocess.Popen(
            [PROGRAM, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=ENVIRONMENT,
            cwd="/",
            pass_fds=descriptors,
        )
    except (OSError, ValueError) as error:
        raise SandboxError(f"{PROGRAM}: {error}") from error
    with process:
        try:
            stdout, stderr = _conversation(process, call, longest_s, is_gone)
        except BaseException:
            # Its guardian ends the job and removes its files.
            process.kill()
            raise
    if len(stdout) > LONGEST_ANSWER:
        raise SandboxError(f"{PROGRAM}: expected {LONGEST_ANSWER} bytes at most, found more")
    with suppress(ValueError):
        answer = json.loads(stdout)
        if isinstance(answer, dict):
            return answer
    text = os.fsdecode(stderr).strip()[-500:]
    raise SandboxError(f"{PROGRAM}: exit code {process.returncode} without an answer: {text}")


def _conversation(
    process: subprocess.Popen[bytes],
    call: bytes,
    longest_s: float,
    is_gone: Callable[[], bool] | None,
) -> tuple[bytes, bytes]:
    end = time.monotonic() + longest_s
    assert process.stdin is not None
    with suppress(BrokenPipeError):  # it ended at once, and says why
        process.stdin.write(call)
        process.stdin.flush()
    # Else `communicate` would close it.
    leash, process.stdin = process.stdin, None
    try:
        while True:
            try:
                return process.communicate(timeout=LOOK_S)
            except subprocess.TimeoutExpired:
                if is_gone is not None and is_gone():
                    raise LimitError("the run was cancelled") from None
                if time.monotonic() > end:
                    raise SandboxError(f"{PROGRAM}: no answer after {longest_s:g} s") from None
    finally:
        with suppress(BrokenPipeError):
            leash.close()
