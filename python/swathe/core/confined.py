"""Run one of our functions on untrusted input, in a process of its own with tight limits.

Each call gets a new process. It is forked by a nursery: a process that has imported the needed
modules and has read no input. So a call starts within milliseconds; an interpreter with astropy
takes a second. The child leads a process group and has limits on memory, time, open files and
file size. It leaves no core file and has only a few harmless environment variables.

A function returns bytes, or raises one of our errors: nothing is unpickled. It may get a file,
whose reads this process answers (`served_file.py`). The child and all its descendants are killed
when its time is over, when the call is cancelled, and when this process ends.
"""

from __future__ import annotations

import asyncio
import json
import os
import selectors
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from swathe.core.errors import FormatError, LimitError, SwatheError, error_class
from swathe.core.served_file import (
    ASK,
    ASK_RANGES,
    REQUEST,
    DirectLine,
    FileReads,
    ReadCounter,
    ServedFile,
)

MEBIBYTE = 1 << 20
LONGEST_CALL = 60_000
"""Limit of the name and the arguments of a function, in bytes."""
LONGEST_FAULT = 10_000
LOOK_S = 0.1
"""Interval at which a call checks whether it was cancelled, in seconds."""
RETRY_S = 5
KEPT_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "LD_LIBRARY_PATH")
RESOLVER = "SWATHE_RESOLVER"
PROXIES = ("http_proxy", "https_proxy", "no_proxy")
"""Variables with which the resolver of object names reaches its service, in either case."""
READY, FAULT = b"a", b"e"
FRAME = struct.Struct("<cQ")
"""Start of an answer of a child: `READY` or `FAULT`, and the bytes that follow."""
EXIT = struct.Struct("<i")
"""How a child ended, as the nursery says it: an exit code, or minus the number of a signal."""
HDF5_VARIABLES = {"HDF5_PLUGIN_PATH": "/nonexistent", "HDF5_USE_FILE_LOCKING": "FALSE"}
"""Filters are not loaded from anywhere, and nothing is locked."""
NICE = 10
"""Lower priority of a child: it may use a whole core, and others wait for this process."""


@dataclass(frozen=True)
class ProcessLimits:
    """Resource limits of a call.

    Attributes:
        memory_mb: address space beyond that of the nursery, in MiB.
        cpu_s: CPU time.
        wall_s: elapsed time.
        answer_mb: size of the answer, in MiB.
        files: number of files open at the same time; with 0 the function's module must be one
            that the nursery has imported, with all that it imports.
        file_mb: size of a file that is written, in MiB; that of the answer by default.
        folder: folder whose files alone may be opened, for reading, by Landlock of Linux; the
            limits on files hold besides. Empty: any.
    """

    memory_mb: int = 512
    cpu_s: int = 20
    wall_s: float = 60.0
    answer_mb: int = 64
    files: int = 64
    file_mb: int | None = None
    folder: str = ""


_is_in_sandbox = False


def use_sandbox() -> None:
    """Let calls run in this process from now on: a sandbox confines it already.

    There, some sandboxes refuse what a process with limits of its own needs.
    """
    global _is_in_sandbox
    _is_in_sandbox = True


class ConfinedProcess:
    """Calls of functions in processes of their own, with a limit on parallel calls."""

    def __init__(
        self, places: int = 2, most_waiting: int = 50, imports: tuple[str, ...] = ()
    ) -> None:
        """Set the limits; no process is started yet.

        Args:
            places: number of parallel calls.
            most_waiting: number of calls that may wait; further calls are refused.
            imports: modules that the nursery imports before the first call. A function,
                `module:function`, is called then, so that no call repeats what it loads.
        """
        self._threads = ThreadPoolExecutor(places, "swathe-confined")
        self._room = threading.BoundedSemaphore(places + most_waiting)
        self._imports = imports
        self._nursery: _Nursery | None = None
        self._lock = threading.Lock()

    def close(self) -> None:
        """End all calls and the nursery."""
        with self._lock:
            nursery, self._nursery = self._nursery, None
        if nursery is not None:
            nursery.close()
        self._threads.shutdown()

    async def call(
        self,
        what: str,
        function: str,
        argument: Mapping[str, Any],
        bounds: ProcessLimits,
        file: FileReads | None = None,
        library: str = "",
    ) -> bytes:
        """Return the result of `module:function` for an argument; cancelling kills the child.

        Args:
            what: name of the input in errors, such as `the table`.
            function: function called with the argument's values as keywords; returns bytes.
            argument: values that JSON can represent.
            bounds: limits of the call.
            file: file that the function gets as its keyword `file`, if any.
            library: name of the library that reads; if it crashes, the input is rejected.

        Raises:
            LimitError: If the call exceeds a limit, or too many calls wait.
            FormatError: If the library crashes, by a signal or by an end without an answer.
            SwatheError: If the function raises one; the class is the same.
        """
        cancel = threading.Event()
        if not self._room.acquire(blocking=False):
            raise LimitError("too many tables are waiting to be read; try again soon", RETRY_S)
        try:
            answer = self._threads.submit(
                self.run, what, function, argument, bounds, file, library, cancel.is_set
            )
        except BaseException:
            self._room.release()
            raise
        answer.add_done_callback(lambda _: self._room.release())
        try:
            return await asyncio.wrap_future(answer)
        finally:
            cancel.set()

    def run(
        self,
        what: str,
        function: str,
        argument: Mapping[str, Any],
        bounds: ProcessLimits,
        file: FileReads | None = None,
        library: str = "",
        is_gone: Callable[[], bool] = lambda: False,
    ) -> bytes:
        """Return the result as `call` does, but block; raise LimitError soon after `is_gone()`."""
        if _is_in_sandbox:
            return _call_here(what, function, argument, file)
        request = {"function": function, "argument": argument, **asdict(bounds)}
        if file is not None:
            request["file"] = [file.size, file.block_bytes, file.first_bytes]
        call = json.dumps(request).encode()
        if len(call) > LONGEST_CALL:
            raise LimitError(f"{what}: expected arguments of {LONGEST_CALL} bytes at most")
        with self._lock:
            if self._nursery is None or self._nursery.is_over():
                self._nursery = _Nursery(self._imports)
            line, leash = self._nursery.call(call)
        with leash, line:
            conversation = _Conversation(line, what, bounds, is_gone)
            answer = conversation.answer(file)
            if answer is None:
                raise _crash(leash, what, bounds, library)
        return _result(*answer, what, bounds)


def _call_here(
    what: str, function: str, argument: Mapping[str, Any], file: FileReads | None
) -> bytes:
    """Return the result of a function that is called in this process."""
    from importlib import import_module

    module, _, name = function.partition(":")
    arguments = dict(argument)
    if file is not None:
        line = DirectLine(ReadCounter(file, what))
        arguments["file"] = ServedFile(line, file.size, file.block_bytes, file.first_bytes)
    result: bytes = getattr(import_module(module), name)(**arguments)
    return result


@dataclass(frozen=True)
class _Conversation:
    """What is said on the line to a child."""

    line: socket.socket
    what: str
    bounds: ProcessLimits
    is_gone: Callable[[], bool]

    def answer(self, file: FileReads | None) -> tuple[bytes, bytearray] | None:
        """Answer the reads of a child; return the kind and content of its result, if it sends one.

        Closing the leash kills the child.
        """
        end = time.monotonic() + self.bounds.wall_s
        counter = None if file is None else ReadCounter(file, self.what)
        self.line.settimeout(LOOK_S)
        while True:
            head = self._receive(FRAME.size, end)
            if head is None:
                return None
            if head[:1] in (ASK, ASK_RANGES) and counter is not None:
                rest = self._receive(REQUEST.size - FRAME.size, end)
                if rest is None:
                    return None
                request = bytes(head + rest)
                ranges = self._receive(counter.length_of(request), end)
                if ranges is None:
                    return None
                self._send(counter.answer(request + ranges), end)
                continue
            kind, length = FRAME.unpack(head)
            most = self.bounds.answer_mb * MEBIBYTE if kind == READY else LONGEST_FAULT
            if length > most:
                raise LimitError(f"{self.what} has more than {self.bounds.answer_mb} MB of values")
            content = self._receive(length, end)
            return None if content is None else (kind, content)

    def _check(self, end: float) -> None:
        if self.is_gone():
            raise LimitError(f"{self.what}: the call was cancelled")
        if time.monotonic() > end:
            raise LimitError(f"{self.what} needs more than {self.bounds.wall_s:g} s to read")

    def _receive(self, length: int, end: float) -> bytearray | None:
        """Return that many bytes, or None if the child ends before."""
        content = bytearray()
        while len(content) < length:
            self._check(end)
            with suppress(TimeoutError):
                part = self.line.recv(min(MEBIBYTE, length - len(content)))
                if not part:
                    return None
                content += part
        return content

    def _send(self, content: bytes, end: float) -> None:
        """Send bytes; a child that has ended is seen at the next `_receive`."""
        rest = memoryview(content)
        while rest:
            self._check(end)
            with suppress(TimeoutError):
                try:
                    rest = rest[self.line.send(rest) :]
                except (BrokenPipeError, ConnectionResetError):
                    return


def _crash(
    leash: socket.socket, what: str, bounds: ProcessLimits, library: str
) -> LimitError | FormatError:
    """Return the error of a child that ended without an answer."""
    leash.settimeout(bounds.wall_s)
    exit_code = EXIT.unpack(leash.recv(EXIT.size).ljust(EXIT.size, b"\0"))[0]
    if exit_code == -signal.SIGXCPU:
        return LimitError(
            f"{what}: expected its reader to need at most {bounds.cpu_s} s of CPU time, found that "
            "it needs more; check whether the file is damaged"
        )
    if library and exit_code != -signal.SIGKILL:
        by = (
            f"by signal {signal.Signals(-exit_code).name}" if exit_code < 0 else "without an answer"
        )
        return FormatError(f"{what}: file rejected: its reader ({library}) ended {by}")
    return LimitError(
        f"{what}: its reader was killed; its limits are {bounds.memory_mb} MB of memory "
        f"and {bounds.cpu_s} s of CPU time"
    )


def _result(kind: bytes, answer: bytearray, what: str, bounds: ProcessLimits) -> bytes:
    """Return the result of a child, or raise its error."""
    if kind == READY:
        return bytes(answer)
    try:
        fault = json.loads(answer)
        name, text = str(fault["kind"]), str(fault.get("text", ""))
    except (ValueError, KeyError, TypeError) as error:
        raise SwatheError(
            f"{what}: its reader sent no valid answer: {bytes(answer[:80])!r}"
        ) from error
    if name == "MemoryError":
        raise LimitError(f"{what} needs more than {bounds.memory_mb} MB to read")
    if name == "LimitError":
        raise LimitError(text)
    if (cls := error_class(name)) is not None:
        raise cls(text)
    raise SwatheError(f"{what}: {name}: {text}")


class _Nursery:
    """Handle of the process that forks a child for every call."""

    def __init__(self, imports: tuple[str, ...]) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        names = list(KEPT_VARIABLES)
        if os.environ.get(RESOLVER):
            names += [RESOLVER, *PROXIES, *map(str.upper, PROXIES)]
        variables = {name: os.environ[name] for name in names if name in os.environ}
        variables["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
        # One thread per library: a process that forks must have no other threads.
        variables |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        # These reserve much more address space than they use.
        variables |= {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "1"}
        variables |= HDF5_VARIABLES
        with theirs:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-P",
                    "-W",
                    "ignore",
                    "-m",
                    __name__,
                    str(theirs.fileno()),
                    *imports,
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env=variables,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        self._socket = ours

    def is_over(self) -> bool:
        """Check whether the nursery has ended and must be replaced."""
        return self._process.poll() is not None

    def call(self, call: bytes) -> tuple[socket.socket, socket.socket]:
        """Begin a call; return its line and its leash. Closing the leash kills the child.

        The child speaks on the line. The nursery says on the leash how the child ended.
        """
        line, their_line = socket.socketpair()
        leash, their_leash = socket.socketpair()
        try:
            with their_line, their_leash:
                numbers = [their_line.fileno(), their_leash.fileno()]
                socket.send_fds(self._socket, [call], numbers)
        except BaseException:
            line.close()
            leash.close()
            raise
        return line, leash

    def close(self) -> None:
        """End the nursery, which kills its children."""
        self._socket.close()
        self._process.wait()


# ---- The functions below run in the nursery and its children.


def _main(number: int, imports: list[str]) -> None:
    """Fork a child for every call until the parent closes its socket."""
    from importlib import import_module

    for name in imports:
        module_name, _, function = name.partition(":")
        module = import_module(module_name)
        if function:
            getattr(module, function)()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = socket.socket(fileno=number)
    children: dict[int, socket.socket] = {}
    with selectors.DefaultSelector() as selector:
        selector.register(parent, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select(LOOK_S if children else None):
                if key.fileobj is parent:
                    call, handles, _, _ = socket.recv_fds(parent, LONGEST_CALL, 2)
                    if not call:
                        _kill(children)
                        return
                    line, leash = (socket.socket(fileno=handle) for handle in handles)
                    if child := os.fork():
                        line.close()
                        children[child] = leash
                        selector.register(leash, selectors.EVENT_READ, child)
                    else:
                        _close_all_but(line.fileno())
                        _child(line, call)
                else:  # the call was cancelled
                    selector.unregister(key.fileobj)
                    _kill({key.data: children[key.data]})
            for child, exit_code in _reap(children):
                leash = children.pop(child)
                with suppress(KeyError):
                    selector.unregister(leash)
                with suppress(BrokenPipeError, ConnectionResetError):  # the call was cancelled
                    leash.sendall(EXIT.pack(exit_code))
                leash.close()


def _close_all_but(number: int) -> None:
    """Close all inherited files but the standard ones and this one."""
    os.closerange(3, number)
    os.closerange(number + 1, os.sysconf("SC_OPEN_MAX"))


def _kill(children: Mapping[int, socket.socket]) -> None:
    for child in children:
        with suppress(ProcessLookupError):  # it does not lead a group yet
            os.killpg(child, signal.SIGKILL)
        os.kill(child, signal.SIGKILL)  # not yet waited for, so the number is still its own


def _reap(children: Mapping[int, socket.socket]) -> list[tuple[int, int]]:
    """Return the children that have ended, with their exit codes; kill what they started."""
    exits = []
    for child in children:
        if os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            with suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
            exits.append((child, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])))
    return exits


def _child(line: socket.socket, call: bytes) -> None:
    """Run a call, send its result or error, and exit."""
    try:
        request = json.loads(call)
        os.setsid()
        os.nice(NICE)
        _confine(
            ProcessLimits(**{name: request[name] for name in ProcessLimits.__dataclass_fields__})
        )
        kind, content = _call_function(request, line)
        line.sendall(FRAME.pack(kind, len(content)))
        line.sendall(content)
        line.shutdown(socket.SHUT_WR)
    except BrokenPipeError:  # the call was cancelled
        os._exit(1)
    except BaseException as error:
        os.write(2, f"swathe: a confined call: {type(error).__name__}: {error}\n".encode())
        os._exit(1)
    os._exit(0)


def _call_function(request: Mapping[str, Any], line: socket.socket) -> tuple[bytes, bytes]:
    """Return the result of a call, or its error as JSON, each after its kind."""
    from importlib import import_module

    module, _, name = request["function"].partition(":")
    argument = dict(request["argument"])
    if "file" in request:
        argument["file"] = ServedFile(line, *request["file"])
    try:
        return READY, getattr(import_module(module), name)(**argument)
    except MemoryError:
        return FAULT, b'{"kind": "MemoryError"}'
    except Exception as error:
        return FAULT, _error_json(error)


def _error_json(error: BaseException) -> bytes:
    cause: BaseException | None = error
    while cause is not None:  # readers wrap a MemoryError in errors of their own
        if isinstance(cause, MemoryError):
            return b'{"kind": "MemoryError"}'
        cause = cause.__cause__ or cause.__context__
    text = str(error).encode("utf-8", "backslashreplace").decode()[: LONGEST_FAULT // 10]
    return json.dumps({"kind": type(error).__name__, "text": text}).encode()


def _confine(bounds: ProcessLimits) -> None:
    """Set the limits of this process; they cannot be raised again."""
    import resource

    if bounds.folder:
        from swathe.core.landlock import restrict_to
    limits = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: MEBIBYTE
        * (bounds.answer_mb if bounds.file_mb is None else bounds.file_mb),
        resource.RLIMIT_NOFILE: bounds.files,
    }
    # SIGXCPU tells the parent why; a second later comes SIGKILL.
    resource.setrlimit(resource.RLIMIT_CPU, (bounds.cpu_s, bounds.cpu_s + 1))
    if sys.platform == "linux":  # other systems do not enforce this limit
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        memory = pages * resource.getpagesize() + bounds.memory_mb * MEBIBYTE
        limits[resource.RLIMIT_AS] = memory
    for limit, value in limits.items():
        resource.setrlimit(limit, (value, value))
    if bounds.folder:
        restrict_to(bounds.folder)


if __name__ == "__main__":
    _main(int(sys.argv[1]), sys.argv[2:])
