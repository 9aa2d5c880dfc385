"""The viewer of traces in a browser: what it draws, and the way through it."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

import swathe
from swathe.catalog import Catalog
from swathe.core.errors import OutputExistsError, SettingsError
from swathe.trace.viewer.encode import encode_view
from swathe.trace.viewer.lifelines import TracedEvents
from swathe.trace.viewer.live import LiveView
from swathe.trace.viewer.loads import loads, series
from swathe.trace.viewer.page import page as page_of
from tests.support import portals, traces
from tests.support.browser import PHONE, OpenPage, keep, visiting
from tests.support.portals import RunningPortal, database_in, served

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

EVIL = "<script>alert(1)</script>"
READY = "#viewer[data-state=ready]"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace of 400 targets of 20 objects on two hosts, one of them with an evil name."""
    path = tmp_path_factory.mktemp("run") / "run.ulm"
    text = traces.job(20, 20, hosts=2)
    text[1:1] = [
        traces.line(10, "CUT_START", "node1", PID=1, TARGET=EVIL),
        traces.line(20, "CUT_END", "node1", PID=1, TARGET=EVIL, RESULT="error"),
        traces.line(30, "CUT_START", "node1", PID=1, TARGET="stopped"),
    ]
    path.write_text("\n".join(text) + "\n")
    return path


@pytest.fixture(scope="module")
def traced(run: Path) -> TracedEvents:
    return LiveView([run], grows=False).trace()


@pytest.fixture(scope="module")
def html(run: Path, traced: TracedEvents) -> Path:
    """The page that needs nothing else."""
    path = run.with_suffix(".html")
    path.write_bytes(page_of(EVIL, encode_view(traced).content()))
    return path


@pytest.fixture
def visit(browser: Browser) -> Iterator[OpenPage]:
    """Opens pages, and waits for the first picture."""
    with visiting(browser) as opened:

        def ready(url: str | Path, home: str = "", **settings: Any) -> Page:
            page = opened(url.as_uri() if isinstance(url, Path) else url, home, **settings)
            page.wait_for_selector(READY)
            return page

        yield ready


def told(page: Page, name: str) -> str:
    return page.locator("#viewer").get_attribute(f"data-{name}") or ""


def number(page: Page, name: str) -> float:
    return float(told(page, name))


def settle(page: Page, test: str, value: object = None) -> None:
    """Wait until what the page tells of itself is so."""
    page.wait_for_function(
        f"value => {{ const d = document.getElementById('viewer').dataset; return {test}; }}",
        arg=value,
    )


def eventually(page: Page, is_true: Callable[[], bool]) -> None:
    """Wait until what can be seen of the page is so."""
    for _ in range(1200):
        if is_true():
            return
        page.wait_for_timeout(100)
    assert is_true()


def drawn(page: Page) -> None:
    """Wait until what was done before is drawn, and told."""
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def frame(page: Page) -> NDArray[np.uint8]:
    """Give the pixels of the plot."""
    picture = page.locator(".plot-area").screenshot()
    return np.asarray(Image.open(io.BytesIO(picture)).convert("RGB"))


def place(page: Page, event: int) -> tuple[float, float]:
    """Give where an event is on the page."""
    box = page.locator("canvas").first.bounding_box()
    assert box is not None
    px, py = page.evaluate("e => document.getElementById('viewer').told.place(e)", event)
    return box["x"] + px, box["y"] + py


def first_of(traced: TracedEvents, word: str, target: str | None = None) -> int:
    events = traced.events
    wanted = events.event.codes == events.event.words.index(word)
    if target is not None:
        codes, words = traced.codes("TARGET")
        wanted &= codes == list(words).index(target)
    return int(np.argmax(wanted))


def middle(page: Page) -> tuple[float, float]:
    box = page.locator("canvas").first.bounding_box()
    assert box is not None
    return box["x"] + 600, box["y"] + 200


def test_draws_every_line(visit: OpenPage, html: Path, traced: TracedEvents) -> None:
    page = visit(html)
    lines = traced.lines("target")
    assert number(page, "events") == len(traced.events.time_ns)
    assert number(page, "lines") == len(lines) == 402
    assert number(page, "pieces") == len(lines.points) - len(lines) + 1
    assert page.get_by_role("heading", level=1).inner_text() == EVIL
    legend = page.locator(".legend").inner_text()
    assert "402 lifelines" in legend
    assert "done: 400" in legend
    assert "failed: 1" in legend
    assert "unfinished: 1" in legend
    pixels = frame(page).astype(int)
    blue = (pixels[..., 2] - pixels[..., 0]) > 60
    assert blue.sum() > 5000
    # All along the run, and not below it.
    assert blue[90:320, 140:-20].any(axis=0).mean() > 0.5
    keep(page, "trace-light")


def test_dark_is_dark(visit: OpenPage, html: Path) -> None:
    page = visit(html, color_scheme="dark")
    dark = frame(page)
    assert np.median(dark) < 60
    assert dark.std() > 10
    page.emulate_media(color_scheme="light")
    eventually(page, lambda: bool(np.median(frame(page)) > 200))


def test_zooms_and_pans(visit: OpenPage, html: Path) -> None:
    page = visit(html)
    whole = frame(page)
    wide = number(page, "to") - number(page, "from")
    page.mouse.move(*middle(page))
    page.mouse.wheel(0, -500)
    settle(page, "d.to - d.from < 0.8 * value", wide)
    assert not np.array_equal(frame(page), whole)
    page.keyboard.press("+")
    settle(page, "d.to - d.from < 0.4 * value", wide)
    before = number(page, "from")
    page.keyboard.press("ArrowRight")
    settle(page, "d.from > value", before)
    moved = number(page, "from")
    px, py = middle(page)
    page.mouse.move(px, py)
    page.mouse.down()
    page.mouse.move(px + 100, py, steps=3)
    page.mouse.up()
    settle(page, "d.from < value", moved)
    page.keyboard.down("Shift")
    page.mouse.move(px, py)
    page.mouse.down()
    page.mouse.move(px + 100, py, steps=3)
    page.mouse.up()
    page.keyboard.up("Shift")
    settle(page, "d.to - d.from < 0.06 * value", wide)
    # Few pieces in sight are drawn one by one.
    settle(page, "d.dense === 'false' && d.drawn > 10")
    keep(page, "trace-zoomed")
    page.get_by_role("button", name="Whole run").click()
    settle(page, "Math.abs(d.to - d.from - value) < 1", wide)
    page.keyboard.press("Home")
    settle(page, "d.from == 0")


def test_overview_moves_the_view(visit: OpenPage, html: Path) -> None:
    page = visit(html)
    for _ in range(3):
        page.keyboard.press("+")
    box = page.locator("canvas").first.bounding_box()
    assert box is not None
    before = number(page, "from")
    page.mouse.click(box["x"] + box["width"] - 60, box["y"] + 15)
    settle(page, "d.from > value", before)


def test_plays_pauses_and_rewinds(visit: OpenPage, html: Path) -> None:
    page = visit(html)
    shown = frame(page)
    # It must not be over before a slow machine says that it is to pause.
    for _ in range(3):
        page.keyboard.press("[")
    page.get_by_role("button", name="Play").click()
    settle(page, "d.playing === 'true' && d.head > 3000")
    page.get_by_role("button", name="Pause").click()
    settle(page, "d.playing === 'false'")
    head = number(page, "head")
    half = frame(page).astype(int)
    page.wait_for_timeout(200)
    assert number(page, "head") == head
    # What is still to come is not shown.
    colored = np.ptp(half[90:320, 140:-20], axis=-1) > 60
    assert colored[:, :10].any()
    assert not colored[:, -200:].any()
    keep(page, "trace-playing")
    speed = page.locator(".rate").inner_text()
    page.keyboard.press("[")
    page.wait_for_function("s => document.querySelector('.rate').textContent !== s", arg=speed)
    page.keyboard.press("]")
    page.wait_for_function("s => document.querySelector('.rate').textContent === s", arg=speed)
    page.get_by_role("button", name="Rewind").click()
    settle(page, "d.head == 0")
    page.locator("canvas").first.focus()
    page.keyboard.press("Space")
    settle(page, "d.playing === 'true' && d.head > 0")
    page.keyboard.press("Escape")
    settle(page, "d.playing === 'false' && d.head === ''")
    page.keyboard.press("0")
    page.mouse.move(0, 0)
    page.locator("canvas").first.blur()
    eventually(page, lambda: np.array_equal(frame(page), shown))


def test_plays_to_the_end_and_stops(visit: OpenPage, html: Path, traced: TracedEvents) -> None:
    page = visit(html)
    for _ in range(8):
        page.keyboard.press("]")
    page.keyboard.press("Space")
    times = traced.events.time_ns
    settle(page, "d.playing === 'false' && d.head == value", int(times[-1] - times[0]) // 1000)


def test_hover_tells_the_event(visit: OpenPage, html: Path, traced: TracedEvents) -> None:
    page = visit(html)
    event = first_of(traced, "DECODE_END", "star-5")
    at = traced.events.time_ns[event] - traced.events.time_ns[0]
    page.mouse.move(*place(page, event))
    page.mouse.wheel(0, -500)
    settle(page, "d.to - d.from < 40000")
    page.mouse.wheel(0, -500)
    settle(page, "d.to - d.from < 8000")
    assert number(page, "from") < at / 1000 < number(page, "to")
    px, py = place(page, event)
    page.mouse.move(px + 1, py + 1)
    settle(page, "d.hover === 'DECODE_END'")
    tip = page.locator(".tip")
    text = tip.inner_text()
    for word in ("star-5", "node", "4711", "ab12", "frame-00000", "ok", "stage took", "2026-11-21"):
        assert word in text, word
    keep(page, "trace-hover")
    page.mouse.down()
    page.mouse.up()
    settle(page, "d.pinned === 'DECODE_END'")
    rows = page.locator(".detail tbody tr")
    names = [row.split("\t")[0] for row in rows.all_inner_texts()]
    assert names[0] == "JOB_START"
    assert names.index("OPEN_END") < names.index("FETCH_END") < names.index("CUT_START")
    assert names[-2:] == ["CUT_END", "JOB_END"]
    page.keyboard.press(".")
    settle(page, "d.pinned === 'ASSEMBLE_START'")
    page.keyboard.press(",")
    settle(page, "d.pinned === 'DECODE_END'")
    # Along the line, between its events.
    nxt = place(page, first_of(traced, "ASSEMBLE_START", "star-5"))
    page.mouse.move((px + nxt[0]) / 2, (py + nxt[1]) / 2)
    settle(page, "d.hover === 'DECODE_END'")
    page.keyboard.press("Escape")
    settle(page, "d.pinned === ''")


def test_shared_event_shows_all_its_lines(
    visit: OpenPage, html: Path, traced: TracedEvents
) -> None:
    page = visit(html)
    event = first_of(traced, "OPEN_END")
    wide = number(page, "to") - number(page, "from")
    page.mouse.move(*place(page, event))
    page.mouse.wheel(0, -600)
    settle(page, "d.to - d.from < 0.5 * value", wide)
    page.mouse.move(*place(page, event))
    settle(page, "d.hover === 'OPEN_END'")
    assert "20 lines" in page.locator(".tip").inner_text()


def test_events_are_chosen(visit: OpenPage, html: Path, traced: TracedEvents) -> None:
    page = visit(html)
    before = frame(page)
    page.get_by_role("button", name="None").click()
    settle(page, "d.pieces == 0")
    page.get_by_label("CUT_START").check()
    settle(page, "d.lines == 402 && d.pieces == 402")
    page.get_by_label("CUT_END").check()
    # One piece for each that has both.
    settle(page, "d.lines == 402 && d.pieces == 402")
    assert not np.array_equal(frame(page), before)
    keep(page, "trace-chosen")
    page.get_by_role("button", name="All", exact=True).click()
    settle(page, "d.pieces > 3000")
    checks = page.locator(".side details").first.locator("input")
    names = [each.get_attribute("id") for each in checks.all()]
    checks.nth(1).focus()
    page.keyboard.press("Alt+ArrowUp")
    page.wait_for_function(
        "id => document.querySelector('.side details input').id === id", arg=names[1]
    )
    assert page.evaluate("document.activeElement.id") == names[1]


def test_kinds_of_lines_are_chosen(visit: OpenPage, html: Path, traced: TracedEvents) -> None:
    page = visit(html)
    for kind in ("object", "request", "job", "stage", "target"):
        page.get_by_label("A line for each").select_option(kind)
        settle(page, "d.kind === value", kind)
        assert number(page, "lines") == len(traced.lines(kind)), kind


def test_lines_are_found_by_id(visit: OpenPage, html: Path) -> None:
    page = visit(html)
    page.get_by_label("Find").fill("star-39")
    settle(page, "d.found == 11")
    page.get_by_label("Find").fill("script")
    settle(page, "d.found == 1")


def load_lines_alike(page: Page, traced: TracedEvents) -> int:
    """Compare all load-lines with those of Python, at some times; gives at how many."""
    start = traced.events.time_ns[0]
    compared = 0
    for load in loads(traced):
        theirs = page.evaluate("n => document.getElementById('viewer').told.series(n)", load.name)
        ours = series(traced, load)
        assert [each["name"] for each in theirs] == [each.name for each in ours]
        for their, our in zip(theirs, ours, strict=True):
            if load.how == "rate":
                assert len(their["rate"]) == len(our.time_ns)
                continue
            # Of events at the same time only what holds after them.
            their_at, our_at = np.array(their["times"]), (our.time_ns - start) // 1000
            for some in np.unique(our_at)[:: max(1, len(our_at) // 200)]:
                here = their["values"][int(np.searchsorted(their_at, some, "right")) - 1]
                there = our.values[int(np.searchsorted(our_at, some, "right")) - 1]
                assert here == pytest.approx(there, rel=1e-6, abs=1), (load.name, some)
                compared += 1
    return compared


def test_load_lines_are_those_of_python(visit: OpenPage, html: Path, traced: TracedEvents) -> None:
    assert load_lines_alike(visit(html), traced) > 1000


def test_several_kinds_at_once(visit: OpenPage, html: Path) -> None:
    page = visit(html)
    before = page.locator("canvas").first.bounding_box()
    page.get_by_label("OPEN in progress").check()
    page.get_by_label("CPU", exact=False).last.check()
    page.get_by_label("Scatter of").select_option("CUT duration")
    assert before is not None
    page.wait_for_function(
        "least => document.querySelector('canvas').getBoundingClientRect().height > least",
        arg=before["height"] + 75,
    )
    keep(page, "trace-several")


def test_by_keyboard_alone(visit: OpenPage, html: Path) -> None:
    page = visit(html)
    page.keyboard.press("Tab")
    reached = set()
    for _ in range(90):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.tagName"))
    assert {"kind", "find", "lane-CUT_END", "scatter", "CANVAS", "BUTTON"} <= reached
    page.locator("canvas").first.focus()
    page.keyboard.press(".")
    settle(page, "d.pinned !== undefined && d.pinned !== ''")
    assert page.locator(".tip").is_visible()
    assert "402 lifelines" in (page.locator("canvas").first.get_attribute("aria-label") or "")


def test_fits_a_phone(visit: OpenPage, html: Path) -> None:
    page = visit(html, viewport=PHONE, has_touch=True, is_mobile=True)
    sizes = "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    assert page.evaluate(sizes) == [360, 360]
    keep(page, "trace-phone")


@pytest.fixture
def serve() -> Iterator[Callable[..., str]]:
    """Starts `swathe trace view`, which is ended by the test; gives the address."""
    running: list[subprocess.Popen[str]] = []

    def started(*words: object) -> str:
        command = [sys.executable, "-m", "swathe.cli", "trace", "view", *map(str, words), "--json"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        running.append(process)
        assert process.stdout is not None
        return str(json.loads(process.stdout.readline())["view"])

    yield started
    for process in running:
        process.terminate()
        process.wait(timeout=120)
        assert process.stdout is not None
        process.stdout.close()


def test_served_page_is_the_same(visit: OpenPage, run: Path, serve: Callable[..., str]) -> None:
    url = serve(run)
    page = visit(url)
    assert number(page, "lines") == 402
    assert page.get_by_role("heading", level=1).inner_text() == "run.ulm"
    whole = httpx.get(f"{url}data?seen=1")
    assert whole.status_code == 200
    assert httpx.get(f"{url}data?seen={whole.headers['X-Version']}").status_code == 204
    assert httpx.get(f"{url}nothing").status_code == 404
    # A name of somebody else that leads here.
    assert httpx.get(url, headers={"Host": "evil.example:80"}).status_code == 400


def test_follows_a_growing_file(
    visit: OpenPage, run: Path, traced: TracedEvents, tmp_path: Path, serve: Callable[..., str]
) -> None:
    text = run.read_text().splitlines(keepends=True)
    path = tmp_path / "live.ulm"
    path.write_text("".join(text[:1000]))
    page = visit(serve(path, "--follow"))
    settle(page, "d.events == 1000")
    lines = number(page, "lines")
    end = number(page, "to")
    with path.open("a") as file:
        file.write("".join(text[1000:2500]))
    settle(page, "d.events == 2500")
    assert number(page, "lines") > lines
    assert number(page, "to") > end
    # Whoever looks at something is left there.
    page.keyboard.press("Home")
    for _ in range(3):
        page.keyboard.press("+")
    page.keyboard.press("ArrowLeft")
    drawn(page)
    assert page.get_by_role("button", name="Follow").get_attribute("aria-pressed") == "false"
    looked = number(page, "from")
    with path.open("a") as file:
        file.write("".join(text[2500:]))
    settle(page, "d.events == value", len(text))
    assert number(page, "from") == looked
    # Put together from what was new, it is what is read at once.
    through = traced.lines("target")
    assert number(page, "lines") == len(through)
    assert number(page, "pieces") == len(through.points) - len(through) + 1
    assert load_lines_alike(page, traced) > 1000
    page.get_by_role("button", name="Follow").click()
    settle(page, "Number(d.from) > value", looked)
    keep(page, "trace-live")


BREAKS = """() => {
  const whole = window.fetch;
  window.fetch = async (...asked) => {
    const answer = await whole(...asked);
    if (answer.status !== 200) return answer;
    window.fetch = whole;
    const cut = (await answer.arrayBuffer()).slice(0, 100);
    const body = new ReadableStream({
      start(stream) {
        stream.enqueue(new Uint8Array(cut));
        stream.error(new TypeError("broken off"));
      },
    });
    return new Response(body, { headers: answer.headers });
  };
}"""
"""The body of the next answer breaks off."""


def test_a_body_that_breaks_off_is_asked_for_again(
    visit: OpenPage, run: Path, tmp_path: Path, serve: Callable[..., str]
) -> None:
    text = run.read_text().splitlines(keepends=True)
    path = tmp_path / "live.ulm"
    path.write_text("".join(text[:-300]))
    page = visit(serve(path, "--follow"))
    page.evaluate(BREAKS)
    # So few that what was there is not sent another time.
    with path.open("a") as file:
        file.write("".join(text[-300:-200]))
    settle(page, "d.live === 'no'")
    with path.open("a") as file:
        file.write("".join(text[-200:-100]))
    settle(page, "d.live === 'yes' && d.events == value", len(text) - 100)
    traced = LiveView([path], grows=False).trace()
    through = traced.lines("target")
    assert number(page, "lines") == len(through)
    assert number(page, "pieces") == len(through.points) - len(through) + 1
    assert load_lines_alike(page, traced) > 1000


def test_command_writes_page_and_picture(run: Path, tmp_path: Path) -> None:
    def view(*words: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "swathe.cli", "trace", "view", *map(str, words)]
        return subprocess.run(command, capture_output=True, text=True, timeout=120)

    made = view(
        *(run, "--output", tmp_path / "a.html", "--plot", tmp_path / "a.png", "--json"),
        *("--width", 900, "--height", 500, "--kind", "object", "--loads", "CUT done"),
    )
    assert made.returncode == 0, made.stderr
    told_by = json.loads(made.stdout)
    assert told_by["events"] == run.read_text().count("\n")
    assert told_by["damaged"] == 0
    with Image.open(tmp_path / "a.png") as picture:
        assert picture.size == (900, 500)
    text = (tmp_path / "a.html").read_text()
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in text
    packed_run = tmp_path / "run.ulm.gz"
    packed_run.write_bytes(gzip.compress(run.read_bytes()))
    for wrong, said in (
        ((run, "--kind", "tile"), "'tile' is not one of 'target', 'object'"),
        ((run, "--plot", tmp_path / "a.gif"), "expected *.png or *.svg"),
        ((run, "--output", tmp_path / "no" / "a.html"), "does not exist"),
        ((run, "--plot", tmp_path / "b.png", "--loads", "x"), "found 'x'"),
        ((run, "--plot", tmp_path / "b.png", "--events", "CUT_END,x"), "found 'x'"),
        ((run, "--output", tmp_path / "b.html", "--events", "x"), "found 'x'"),
        ((run, "--output", tmp_path / "b.html", "--loads", "x"), "found 'x'"),
        ((tmp_path / "nothing.ulm",), "nothing.ulm"),
        ((packed_run,), "decompress it first"),
        ((run, "--follow", "--plot", tmp_path / "b.png"), "expected neither --output nor --plot"),
    ):
        failed = view(*wrong)
        assert failed.returncode != 0
        assert said in failed.stderr
        assert "Traceback" not in failed.stderr


def test_python_draws_as_the_command_does(run: Path, tmp_path: Path) -> None:
    page, plot = tmp_path / "a.html", tmp_path / "a.png"
    events = swathe.trace.view(run, page=page, plot=plot, width=900, height=500, kind="object")
    assert len(events.time_ns) == run.read_text().count("\n")
    with Image.open(plot) as picture:
        assert picture.size == (900, 500)
    assert "&quot;kind&quot;: &quot;object&quot;" in page.read_text()
    with pytest.raises(OutputExistsError):
        swathe.trace.view(run, page=page)


def test_python_refuses_a_view_that_makes_no_sense(run: Path, tmp_path: Path) -> None:
    page = tmp_path / "a.html"
    wrong_settings: tuple[tuple[dict[str, Any], str], ...] = (
        ({}, "expected page or plot, found neither"),
        ({"page": page, "kind": "tile"}, "kind: expected one of target, object"),
        ({"page": page, "clocks": "mine"}, "clocks: expected one of aligned, written"),
        ({"page": page, "loads": ["x"]}, "loads: expected one of .* found 'x'"),
    )
    for settings, message in wrong_settings:
        with pytest.raises(SettingsError, match=message):
            swathe.trace.view(run, **settings)
    assert not page.exists()


RECORDED = "import sys, swathe.trace; swathe.trace.start(sys.argv.pop(1)); {}"


@pytest.fixture(scope="module")
def recorded(
    tmp_path_factory: pytest.TempPathFactory, run: Path
) -> Iterator[tuple[RunningPortal, str]]:
    """A portal that needs tokens and records its events; and the token of an admin."""
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "events.ulm").write_text(run.read_text())
    with Catalog.open(database_in(folder)) as catalog:
        root = catalog.add_token("root", ["admin"])[0]
        (folder / "bob.token").write_text(catalog.add_token("bob", ["read", "submit"])[0])

    plain = portals.command_for

    def command(*given: Any) -> list[str]:
        python, _, module, *words = plain(*given)
        start = RECORDED.format(f"import {module}.app as command; command.main()")
        return [python, "-c", start, str(folder / "events.ulm"), *words]

    with ExitStack() as stack:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(portals, "command_for", command)
            running = stack.enter_context(served(folder, '[access]\ntokens = "required"\n'))
        yield running, root


def test_trace_of_a_portal_is_for_admins(recorded: tuple[RunningPortal, str]) -> None:
    running, root = recorded
    bob = (running.folder / "bob.token").read_text()
    for address in ("/trace", "/trace/data"):
        turned = httpx.get(running.url + address)
        assert turned.status_code == 303
        refused = httpx.get(running.url + address, headers={"Authorization": f"Bearer {bob}"})
        assert refused.status_code == 403
        assert "admin" in refused.text
        allowed = httpx.get(running.url + address, headers={"Authorization": f"Bearer {root}"})
        assert allowed.status_code == 200, allowed.text
    for token, link in ((bob, False), (root, True)):
        front = httpx.get(running.url, headers={"Authorization": f"Bearer {token}"}).text
        assert ('href="/trace"' in front) == link


def test_trace_of_a_portal_is_live(
    recorded: tuple[RunningPortal, str], visit: OpenPage, run: Path
) -> None:
    running, root = recorded
    headers = {"Authorization": f"Bearer {root}"}
    page = visit(running.url + "/trace", running.url, extra_http_headers=headers)
    seen = number(page, "events")
    assert seen >= run.read_text().count("\n")
    assert page.locator("main").count() == 1
    assert page.locator('nav a[aria-current="page"]').inner_text() == "Trace"
    keep(page, "trace-portal")
    with (running.folder / "events.ulm").open("a") as file:
        file.write(traces.line(400_000, "MARK", PID=1) + "\n")
    settle(page, "d.events > value", seen)
    page.close()
    # It does not show its own requests for news, which would always be news.
    told = (running.folder / "events.ulm").read_text()
    assert " PATH=/trace " in told.replace("\n", " ")
    assert "/trace/data" not in told


def test_portal_that_records_nothing_says_so(tmp_path: Path) -> None:
    with served(tmp_path) as running:
        answer = httpx.get(running.url + "/trace")
        assert answer.status_code == 404
        assert "no events are recorded" in answer.text
        assert 'href="/trace"' not in httpx.get(running.url).text
