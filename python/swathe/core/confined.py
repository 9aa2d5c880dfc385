"""Run one of our functions on untrusted input, in a process of its own with tight limits.

Each call gets a new process. It is forked by a nursery: a process that has imported the needed
modules and has read no input. So a call starts within milliseconds; an interpreter with astropy
takes a second. The child leads a process group and has limits on memory, time, open files and
file size. It leaves no core file and has only a few harmless environment variables.

A function returns bytes, or raises one of our errors: nothing is unpickled. The child and all
its descendants are killed when its time is over, when the call is cancelled, and when this
process ends.
"""

from __future__ import annotations

import asyncio
import json
import os
import selectors
import signal
import socket
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

from swathe.core import errors
from swathe.core.errors import LimitError, SwatheError

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
READY = b"\0"
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
        files: number of files open at the same time.
    """

    memory_mb: int = 512
    cpu_s: int = 20
    wall_s: float = 60.0
    answer_mb: int = 64
    files: int = 64


class ConfinedProcess:
    """Calls of functions in processes of their own, with a limit on parallel calls."""

    def __init__(
        self, places: int = 2, most_waiting: int = 50, imports: tuple[str, ...] = ()
    ) -> None:
        """Set the limits; no process is started yet.

        Args:
            places: number of parallel calls.
            most_waiting: number of calls that may wait; further calls are refused.
            imports: modules that the nursery imports before the first call.
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
        self, what: str, function: str, argument: Mapping[str, Any], bounds: ProcessLimits
    ) -> bytes:
        """Return the result of `module:function` for an argument; cancelling kills the child.

        Args:
            what: name of the input in errors, such as `the table`.
            function: function called with the argument's values as keywords; returns bytes.
            argument: values that JSON can represent.
            bounds: limits of the call.

        Raises:
            LimitError: If the call exceeds a limit, or too many calls wait.
            SwatheError: If the function raises one; the class is the same.
        """
        cancel = threading.Event()
        if not self._room.acquire(blocking=False):
            raise LimitError("too many tables are waiting to be read; try again soon", RETRY_S)
        try:
            answer = self._threads.submit(self.run, what, function, argument, bounds, cancel.is_set)
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
        is_gone: Callable[[], bool] = lambda: False,
    ) -> bytes:
        """Return the result as `call` does, but block; raise LimitError soon after `is_gone()`."""
        call = json.dumps({"function": function, "argument": argument, **asdict(bounds)}).encode()
        if len(call) > LONGEST_CALL:
            raise LimitError(f"{what}: expected arguments of {LONGEST_CALL} bytes at most")
        with self._lock:
            if self._nursery is None or self._nursery.is_over():
                self._nursery = _Nursery(self._imports)
            leash = self._nursery.call(call)
        with leash:
            answer = _answer(leash, what, bounds, is_gone)
        return _result(answer, what, bounds)


def _answer(
    leash: socket.socket, what: str, bounds: ProcessLimits, is_gone: Callable[[], bool]
) -> bytearray:
    """Return all bytes that a child sends; closing the leash kills the child."""
    end = time.monotonic() + bounds.wall_s
    answer = bytearray()
    most = bounds.answer_mb * MEBIBYTE + LONGEST_FAULT
    leash.settimeout(LOOK_S)
    while True:
        if is_gone():
            raise LimitError(f"{what}: the call was cancelled")
        if time.monotonic() > end:
            raise LimitError(f"{what} needs more than {bounds.wall_s:g} s to read")
        try:
            part = leash.recv(MEBIBYTE)
        except TimeoutError:
            continue
        if not part:
            return answer
        answer += part
        if len(answer) > most:
            raise LimitError(f"{what} has more than {bounds.answer_mb} MB of values")


def _result(answer: bytearray, what: str, bounds: ProcessLimits) -> bytes:
    """Return the result of a child, or raise its error; an empty answer means it was killed."""
    if answer.startswith(READY):
        return bytes(memoryview(answer)[1:])
    try:
        fault = json.loads(answer) if answer else {"kind": "killed"}
        kind, text = str(fault["kind"]), str(fault.get("text", ""))
    except (ValueError, KeyError, TypeError) as error:
        raise SwatheError(
            f"{what}: its reader sent no valid answer: {bytes(answer[:80])!r}"
        ) from error
    if kind == "MemoryError":
        raise LimitError(f"{what} needs more than {bounds.memory_mb} MB to read")
    if kind == "killed":
        raise LimitError(
            f"{what}: its reader was killed; its limits are {bounds.memory_mb} MB of memory "
            f"and {bounds.cpu_s} s of CPU time"
        )
    if kind == "LimitError":
        raise LimitError(text)
    error_class = getattr(errors, kind, None)
    if isinstance(error_class, type) and issubclass(error_class, SwatheError):
        raise error_class(text)
    raise SwatheError(f"{what}: {kind}: {text}")


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

    def call(self, call: bytes) -> socket.socket:
        """Begin a call; return the socket of its answer. Closing the socket kills the child."""
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                socket.send_fds(self._socket, [call], [theirs.fileno()])
        except BaseException:
            ours.close()
            raise
        return ours

    def close(self) -> None:
        """End the nursery, which kills its children."""
        self._socket.close()
        self._process.wait()


# ---- The functions below run in the nursery and its children.


def _main(number: int, imports: list[str]) -> None:
    """Fork a child for every call until the parent closes its socket."""
    from importlib import import_module

    for name in imports:
        import_module(name)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = socket.socket(fileno=number)
    children: dict[int, socket.socket] = {}
    with selectors.DefaultSelector() as selector:
        selector.register(parent, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select(LOOK_S if children else None):
                if key.fileobj is parent:
                    call, handles, _, _ = socket.recv_fds(parent, LONGEST_CALL, 1)
                    if not call:
                        _kill(children)
                        return
                    leash = socket.socket(fileno=handles[0])
                    if child := os.fork():
                        children[child] = leash
                        selector.register(leash, selectors.EVENT_READ, child)
                    else:
                        _close_all_but(leash.fileno())
                        _child(leash, call)
                else:  # the call was cancelled
                    selector.unregister(key.fileobj)
                    _kill({key.data: children[key.data]})
            for child in _reap(children):
                leash = children.pop(child)
                with suppress(KeyError):
                    selector.unregister(leash)
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


def _reap(children: Mapping[int, socket.socket]) -> list[int]:
    """Return the children that have ended; kill what they started."""
    exits = []
    for child in children:
        if os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            with suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            exits.append(child)
    return exits


def _child(leash: socket.socket, call: bytes) -> None:
    """Run a call, send its result or error, and exit."""
    try:
        request = json.loads(call)
        os.setsid()
        os.nice(NICE)
        _confine(
            ProcessLimits(**{name: request[name] for name in ProcessLimits.__dataclass_fields__})
        )
        leash.sendall(_call_function(request))
        leash.shutdown(socket.SHUT_WR)
    except BrokenPipeError:  # the call was cancelled
        os._exit(1)
    except BaseException as error:
        os.write(2, f"swathe: a confined call: {type(error).__name__}: {error}\n".encode())
        os._exit(1)
    os._exit(0)


def _call_function(request: Mapping[str, Any]) -> bytes:
    """Return the result of a call, or its error as JSON."""
    from importlib import import_module

    module, _, name = request["function"].partition(":")
    try:
        result: bytes = getattr(import_module(module), name)(**request["argument"])
        return READY + result
    except MemoryError:
        return b'{"kind": "MemoryError"}'
    except Exception as error:
        return _error_json(error)


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

    limits = {
        resource.RLIMIT_CPU: bounds.cpu_s,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: bounds.answer_mb * MEBIBYTE,
        resource.RLIMIT_NOFILE: bounds.files,
    }
    if sys.platform == "linux":  # other systems do not enforce this limit
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        memory = pages * resource.getpagesize() + bounds.memory_mb * MEBIBYTE
        limits[resource.RLIMIT_AS] = memory
    for limit, value in limits.items():
        resource.setrlimit(limit, (value, value))


if __name__ == "__main__":
    _main(int(sys.argv[1]), sys.argv[2:])
