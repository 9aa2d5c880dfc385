"""What became of a program in a sandbox, and which sandboxes a machine has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from swathe.core.errors import LimitError, ProgramError

Status = Literal["OK", "RE", "SG", "TO"]
"""As `isolate` has them: fine; a wrong exit code or output; killed by a signal; over a limit."""


@dataclass(frozen=True)
class Log:
    """What a program wrote to standard output or standard error.

    Attributes:
        text: start and end of what it wrote, without control characters. It may contain HTML.
        bytes: bytes that it wrote.
        is_whole: whether `text` has all of it.
    """

    text: str
    bytes: int
    is_whole: bool


@dataclass(frozen=True)
class OutputFile:
    """An output that was collected.

    Attributes:
        path: copy in the folder of results.
        bytes: size in bytes.
        sha256: checksum, in hexadecimal digits.
    """

    path: Path
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Report:
    """What became of a program.

    Attributes:
        status: how it ended.
        limit: limit that ended it, a field of `Limits`; empty if none did.
        message: what went wrong, in a sentence; empty if nothing did.
        exit_code: its exit code; `None` if a signal ended it.
        signal: number of the signal that ended it, if one did.
        mode: how it was confined: `bwrap` or `landlock`.
        uid: user id under which it ran.
        cpu_s: CPU time of all its processes, in seconds.
        wall_s: elapsed time, in seconds.
        max_rss_bytes: most memory seen, of all processes together, in bytes.
        stdout: what it wrote to standard output.
        stderr: what it wrote to standard error.
        outputs: outputs that were collected, by name.
        problems: why others were not collected, by name.
    """

    status: Status
    limit: str
    message: str
    exit_code: int | None
    signal: int | None
    mode: str
    uid: int
    cpu_s: float
    wall_s: float
    max_rss_bytes: int
    stdout: Log
    stderr: Log
    outputs: Mapping[str, OutputFile]
    problems: Mapping[str, str]

    def check(self) -> None:
        """Check that the program ended well and all its outputs were collected.

        Raises:
            LimitError: If it was ended by a limit.
            ProgramError: If it failed, or an output is missing or refused.
        """
        if self.status == "TO":
            raise LimitError(self.message)
        if self.status != "OK":
            last = self.stderr.text.strip().rpartition("\n")[2]
            raise ProgramError(f"{self.message}: {last}" if last else self.message)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Report:
        """Return the report of an answer of `swathe-sandbox run`."""
        return cls(
            status=values["status"],
            limit=values["limit"] or "",
            message=values["message"],
            exit_code=values["exit_code"],
            signal=values["signal"],
            mode=values["mode"],
            uid=values["uid"],
            cpu_s=values["cpu_s"],
            wall_s=values["wall_s"],
            max_rss_bytes=values["max_rss_bytes"],
            stdout=Log(**values["stdout"]),
            stderr=Log(**values["stderr"]),
            outputs={
                each["name"]: OutputFile(Path(each["path"]), each["bytes"], each["sha256"])
                for each in values["outputs"]
            },
            problems={each["name"]: each["problem"] for each in values["problems"]},
        )


@dataclass(frozen=True)
class ModeCheck:
    """Whether a mode works on this machine.

    Attributes:
        mode: `bwrap` or `landlock`.
        holds: whether a program ran in it, confined.
        reason: why not; empty if it holds.
        version: version of bubblewrap, or of the interface of Landlock; empty if unknown.
    """

    mode: str
    holds: bool
    reason: str
    version: str


@dataclass(frozen=True)
class SandboxCheck:
    """Which sandboxes this machine has.

    Attributes:
        kernel: release of the kernel.
        uid: user id of this process.
        modes: its modes, the better one first.
    """

    kernel: str
    uid: int
    modes: tuple[ModeCheck, ...]

    @property
    def holds(self) -> bool:
        """Whether users' programs may run on this machine."""
        return any(each.holds for each in self.modes)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> SandboxCheck:
        """Return the check of an answer of `swathe-sandbox check`."""
        modes = tuple(ModeCheck(**each) for each in values["modes"])
        return cls(values["kernel"], values["uid"], modes)
