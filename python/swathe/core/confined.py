"""Run a function of ours on what strangers sent, in a process of its own that may take little.

The process is new for every call: a nursery, which has imported what such functions need and has
seen nothing else, forks it. So a call begins within milliseconds, where an interpreter with astropy
takes a second. The child leads a process group and has limits on memory, time, files and their
size; it leaves no core file, and knows no variable of the environment but a few harmless ones.

What a function gives is bytes, and what it raises is an error of ours: nothing is unpickled. The
child is killed, with all that it began, when its time is over, when nobody wants its answer any
more, and when this process ends.
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
"""Bytes of the name and the arguments of a function."""
LONGEST_FAULT = 10_000
LOOK_S = 0.1
"""How often a call looks whether it is still wanted."""
RETRY_S = 5
KEPT_VARIABLES = (
    *("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "LD_LIBRARY_PATH"),
    "SWATHE_RESOLVER",
)
READY = b"\0"


@dataclass(frozen=True)
class Bounds:
    """What a call may take.

    Attributes:
        memory_mb: address space beyond that of the nursery, MiB.
        cpu_s: time of the processor.
        wall_s: time of the clock.
        answer_mb: what it gives back, MiB.
        files: open at the same time.
    """

    memory_mb: int = 512
    cpu_s: int = 20
    wall_s: float = 60.0
    answer_mb: int = 64
    files: int = 64


class Confined:
    """Calls of functions in processes of their own, so many at a time."""

    def __init__(
        self, places: int = 2, most_waiting: int = 50, imports: tuple[str, ...] = ()
    ) -> None:
        """Begin nothing yet.

        Args:
            places: calls at the same time.
            most_waiting: calls that wait for a place; more are refused.
            imports: modules that the nursery imports before the first call.
        """
        self._threads = ThreadPoolExecutor(places, "swathe-confined")
        self._room = threading.BoundedSemaphore(places + most_waiting)
        self._imports = imports
        self._nursery: _Nursery | None = None
        self._lock = threading.Lock()

    def close(self) -> None:
        """End all calls, and the nursery."""
        with self._lock:
            nursery, self._nursery = self._nursery, None
        if nursery is not None:
            nursery.close()
        self._threads.shutdown()

    async def call(
        self, what: str, function: str, argument: Mapping[str, Any], bounds: Bounds
    ) -> bytes:
        """Return what `module:function` gives for an argument; to cancel this kills the child.

        Args:
            what: the thing that is read, in errors, such as `the table`.
            function: called with the argument's values by name; gives bytes.
            argument: what JSON can hold.
            bounds: what the call may take.

        Raises:
            LimitError: where it takes more, or too many calls wait.
            SwatheError: what the function raises, of the same class.
        """
        gone = threading.Event()
        if not self._room.acquire(blocking=False):
            raise LimitError("too many tables are waiting to be read; try again soon", RETRY_S)
        try:
            answer = self._threads.submit(self.run, what, function, argument, bounds, gone.is_set)
        except BaseException:
            self._room.release()
            raise
        answer.add_done_callback(lambda _: self._room.release())
        try:
            return await asyncio.wrap_future(answer)
        finally:
            gone.set()

    def run(
        self,
        what: str,
        function: str,
        argument: Mapping[str, Any],
        bounds: Bounds,
        is_gone: Callable[[], bool] = lambda: False,
    ) -> bytes:
        """Return the same, once it is there; raise LimitError soon after `is_gone` says so."""
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
    leash: socket.socket, what: str, bounds: Bounds, is_gone: Callable[[], bool]
) -> bytearray:
    """Return all that comes from a child; it is killed when the leash is closed."""
    end = time.monotonic() + bounds.wall_s
    answer = bytearray()
    most = bounds.answer_mb * MEBIBYTE + LONGEST_FAULT
    leash.settimeout(LOOK_S)
    while True:
        if is_gone():
            raise LimitError(f"{what}: nobody waits for it any more")
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


def _result(answer: bytearray, what: str, bounds: Bounds) -> bytes:
    """Return what a child gave, or raise what it says; without a word it was killed."""
    if answer.startswith(READY):
        return bytes(memoryview(answer)[1:])
    try:
        fault = json.loads(answer) if answer else {"kind": "killed"}
        kind, text = str(fault["kind"]), str(fault.get("text", ""))
    except (ValueError, KeyError, TypeError) as error:
        raise SwatheError(f"{what}: its reader gave no answer: {bytes(answer[:80])!r}") from error
    if kind == "MemoryError":
        raise LimitError(f"{what} needs more than {bounds.memory_mb} MB to read")
    if kind == "killed":
        raise LimitError(
            f"{what}: its reader was killed; it may take {bounds.memory_mb} MB and "
            f"{bounds.cpu_s} s of the processor"
        )
    if kind == "LimitError":
        raise LimitError(text)
    known = getattr(errors, kind, None)
    if isinstance(known, type) and issubclass(known, SwatheError):
        raise known(text)
    raise SwatheError(f"{what}: {kind}: {text}")


class _Nursery:
    """The process that forks a child for every call, as this process sees it."""

    def __init__(self, imports: tuple[str, ...]) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        variables = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
        variables["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
        # One thread of each library: what forks is to have no others.
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
        """Return whether it has ended, and a new one is needed."""
        return self._process.poll() is not None

    def call(self, call: bytes) -> socket.socket:
        """Begin a call; return the socket that its answer comes by, which kills it when closed."""
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                socket.send_fds(self._socket, [call], [theirs.fileno()])
        except BaseException:
            ours.close()
            raise
        return ours

    def close(self) -> None:
        """End it; it kills its children."""
        self._socket.close()
        self._process.wait()


# ---- What follows runs in the nursery and its children.


def _main(number: int, imports: list[str]) -> None:
    """Fork children until there is nobody who could ask for more."""
    from importlib import import_module

    for name in imports:
        import_module(name)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    asked = socket.socket(fileno=number)
    children: dict[int, socket.socket] = {}
    with selectors.DefaultSelector() as selector:
        selector.register(asked, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select(LOOK_S if children else None):
                if key.fileobj is asked:
                    call, handles, _, _ = socket.recv_fds(asked, LONGEST_CALL, 1)
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
                else:  # nobody wants the answer
                    selector.unregister(key.fileobj)
                    _kill({key.data: children[key.data]})
            for child in _ended(children):
                leash = children.pop(child)
                with suppress(KeyError):
                    selector.unregister(leash)
                leash.close()


def _close_all_but(number: int) -> None:
    """Close what a child was not given."""
    os.closerange(3, number)
    os.closerange(number + 1, os.sysconf("SC_OPEN_MAX"))


def _kill(children: Mapping[int, socket.socket]) -> None:
    for child in children:
        with suppress(ProcessLookupError):  # it leads no group yet
            os.killpg(child, signal.SIGKILL)
        os.kill(child, signal.SIGKILL)  # not yet waited for, so it is still this one


def _ended(children: Mapping[int, socket.socket]) -> list[int]:
    """Return the children that have ended; what they began ends with them."""
    ended = []
    for child in children:
        if os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            with suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            ended.append(child)
    return ended


def _child(leash: socket.socket, call: bytes) -> None:
    """Run a call, say what came of it, and end."""
    try:
        asked = json.loads(call)
        os.setsid()
        _confine(Bounds(**{name: asked[name] for name in Bounds.__dataclass_fields__}))
        leash.sendall(_said(asked))
        leash.shutdown(socket.SHUT_WR)
    except BrokenPipeError:  # nobody wants the answer any more
        os._exit(1)
    except BaseException as error:
        os.write(2, f"swathe: a confined call: {type(error).__name__}: {error}\n".encode())
        os._exit(1)
    os._exit(0)


def _said(asked: Mapping[str, Any]) -> bytes:
    """Return the result of a call, or its error as JSON."""
    from importlib import import_module

    module, _, name = asked["function"].partition(":")
    try:
        result: bytes = getattr(import_module(module), name)(**asked["argument"])
        return READY + result
    except MemoryError:
        return b'{"kind": "MemoryError"}'
    except Exception as error:
        return _fault(error)


def _fault(error: BaseException) -> bytes:
    cause: BaseException | None = error
    while cause is not None:  # readers tell of it in words of their own
        if isinstance(cause, MemoryError):
            return b'{"kind": "MemoryError"}'
        cause = cause.__cause__ or cause.__context__
    text = str(error).encode("utf-8", "backslashreplace").decode()[: LONGEST_FAULT // 10]
    return json.dumps({"kind": type(error).__name__, "text": text}).encode()


def _confine(bounds: Bounds) -> None:
    """Set the limits of this process, for good."""
    import resource

    limits = {
        resource.RLIMIT_CPU: bounds.cpu_s,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: bounds.answer_mb * MEBIBYTE,
        resource.RLIMIT_NOFILE: bounds.files,
    }
    if sys.platform == "linux":  # others keep no limit of it
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        memory = pages * resource.getpagesize() + bounds.memory_mb * MEBIBYTE
        limits[resource.RLIMIT_AS] = memory
    for limit, value in limits.items():
        resource.setrlimit(limit, (value, value))


if __name__ == "__main__":
    _main(int(sys.argv[1]), sys.argv[2:])
