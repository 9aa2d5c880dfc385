// Where things lie, and the frames that are drawn.

const MOST_PIXELS = 2.6e6;
const GUTTER = 128;
const RIGHT = 14;
const OVERVIEW = 30; // Height of the whole run, above all.
const AXIS = OVERVIEW + 44; // Where the lifelines begin, below the times.
const SERIES = ["--c-1", "--c-2", "--c-3", "--c-4", "--c-5", "--c-6"];

function arrange() {
  const width = Math.max(320, ui.plot.clientWidth);
  const rowsOfLoads = shownLoads();
  const rowsOfMarks = shownMarks();
  const scatter = scatters().find((each) => each.name === state.scatter);
  const lanes = shownLanes();
  const below = rowsOfLoads.length * 80 + rowsOfMarks.length * 20 + (scatter ? 112 : 0) + AXIS + 30;
  const room = window.innerHeight - ui.plot.getBoundingClientRect().top - window.scrollY - 70;
  const tall = Math.max(200, lanes.length * 17, Math.min(Math.max(room - below, 380), lanes.length * 44));
  const made = { width, panels: [], left: GUTTER, right: width - RIGHT };
  let top = AXIS;
  const panel = (kind, height, gap, more = {}) => {
    made.panels.push({ kind, top, height, ...more });
    top += height + gap;
  };
  panel("lines", tall, 24, { lanes });
  if (scatter) panel("scatter", 80, 32, { scatter });
  for (const load of rowsOfLoads) panel("load", 54, 26, { load });
  for (const word of rowsOfMarks) panel("marks", 14, 6, { word });
  made.bottom = top;
  made.height = top + 6;
  made.panels.push({ kind: "overview", top: 4, height: OVERVIEW });
  const ratio = Math.min(window.devicePixelRatio || 1, Math.sqrt(MOST_PIXELS / (width * tall)));
  made.ratio = Math.max(1, ratio);
  for (const canvas of [ui.canvas, ui.over]) {
    canvas.width = Math.round(width * made.ratio);
    canvas.height = Math.round(made.height * made.ratio);
    canvas.style.height = `${made.height}px`;
  }
  ui.plot.style.height = `${made.height}px`;
  layout = made;
}

function colors() {
  if (palette) return palette;
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(name).trim();
  const rgb = (text) => [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16));
  palette = {
    text: read("--text"),
    quiet: read("--quiet"),
    line: read("--line"),
    sheet: read("--sheet"),
    accent: read("--accent"),
    sunken: read("--sunken"),
    outcome: [...[0, 1, 2, 3].map((each) => read(`--outcome-${each}`)), read("--step-2")],
    series: SERIES.map(read),
    sans: `12px ${read("--sans")}`,
    mono: `11px ${read("--mono")}`,
  };
  palette.outcomeRgb = palette.outcome.map(rgb);
  palette.strong = rgb(palette.text);
  return palette;
}

const x = (t) => layout.left + ((t - state.t0) / (state.t1 - state.t0)) * (layout.right - layout.left);
const t = (px) => state.t0 + ((px - layout.left) / (layout.right - layout.left)) * (state.t1 - state.t0);
const laneY = (panel, lane) => {
  const step = panel.height / Math.max(1, panel.lanes.length);
  return panel.top + panel.height - (lane + 0.5) * step;
};

function draw() {
  if (dirty || !trace) return;
  dirty = true;
  requestAnimationFrame(paint);
}

function paint() {
  dirty = false;
  const began = performance.now();
  if (state.playing) advance(began);
  const g = ui.canvas.getContext("2d");
  g.setTransform(layout.ratio, 0, 0, layout.ratio, 0, 0);
  g.clearRect(0, 0, layout.width, layout.height);
  axis(g);
  for (const panel of layout.panels) painters[panel.kind](g, panel);
  if (state.head !== null) cover(g);
  paintOver();
  report(performance.now() - began);
  if (state.playing) draw();
}

function axis(g) {
  const c = colors();
  const { made, digits } = ticks(trace, state.t0, state.t1, (layout.right - layout.left) / 118);
  const { bottom } = layout;
  g.font = c.sans;
  g.textAlign = "center";
  g.textBaseline = "alphabetic";
  for (const at of made) {
    const px = Math.round(x(at)) + 0.5;
    g.strokeStyle = c.line;
    g.lineWidth = 1;
    g.beginPath();
    g.moveTo(px, AXIS - 6);
    g.lineTo(px, bottom);
    g.stroke();
    g.fillStyle = c.quiet;
    const text = clock(trace.start + at, digits);
    const half = g.measureText(text).width / 2;
    g.fillText(text, Math.min(Math.max(px, layout.left - 10 + half), layout.width - half - 2), AXIS - 12);
  }
  g.textAlign = "left";
  g.fillStyle = c.quiet;
  g.fillText(`${day(trace.start + state.t0)} UTC`, 4, AXIS - 12);
}

/** Hide what is still to come. */
function cover(g) {
  const c = colors();
  const px = Math.min(layout.right, Math.max(layout.left, x(state.head)));
  const { bottom } = layout;
  g.globalAlpha = 0.9;
  g.fillStyle = c.sheet;
  g.fillRect(px, AXIS - 4, layout.right - px + 1, bottom - AXIS + 4);
  g.globalAlpha = 1;
  g.fillStyle = c.accent;
  g.fillRect(px - 1, AXIS - 6, 2, bottom - AXIS + 6);
}

/** Draw what follows the pointer: the line it is at, the time, the box to zoom to. */
function paintOver() {
  const c = colors();
  const g = ui.over.getContext("2d");
  g.setTransform(layout.ratio, 0, 0, layout.ratio, 0, 0);
  g.clearRect(0, 0, layout.width, layout.height);
  const panel = layout.panels[0];
  const matched = state.matched ?? [];
  for (const line of matched.slice(0, 500)) trail(g, panel, line, c.accent, 1.8);
  const at = state.hover ?? state.pinned;
  if (state.pinned) for (const line of state.pinned.lines.slice(0, 500)) trail(g, panel, line, c.text, 2.2);
  if (state.hover) for (const line of state.hover.lines.slice(0, 500)) trail(g, panel, line, c.text, state.hover.lines.length > 20 ? 1 : 2);
  if (at) {
    const lane = panel.lanes.indexOf(trace.words[trace.code[at.event]]);
    const px = x(trace.time[at.event]);
    const py = lane < 0 ? at.y : laneY(panel, lane);
    g.beginPath();
    g.arc(px, py, 5, 0, 7);
    g.fillStyle = c.sheet;
    g.fill();
    g.lineWidth = 2.5;
    g.strokeStyle = c.text;
    g.stroke();
  }
  if (state.pointer !== undefined && state.pointer >= layout.left && state.pointer <= layout.right) {
    const { bottom } = layout;
    g.fillStyle = c.quiet;
    g.globalAlpha = 0.6;
    g.fillRect(state.pointer, AXIS - 4, 1, bottom - AXIS + 4);
    g.globalAlpha = 1;
    g.font = c.sans;
    g.textBaseline = "alphabetic";
    for (const each of layout.panels) {
      if (!each.read) continue;
      const told = each.read(state.pointer - layout.left).filter(({ value }) => !Number.isNaN(value));
      if (!told.length) continue;
      const text = told.map(({ name, value }) => (told.length > 1 ? `${name}: ` : "") + amount(value, each.load.unit)).join("   ");
      const half = g.measureText(text).width;
      const left = Math.min(state.pointer + 6, layout.right - half);
      g.fillStyle = c.sheet;
      g.globalAlpha = 0.85;
      g.fillRect(left - 3, each.top, half + 6, 16);
      g.globalAlpha = 1;
      g.textAlign = "left";
      g.fillStyle = c.text;
      g.fillText(text, left, each.top + 12);
    }
  }
  if (state.zoomBox) {
    const [from, to] = state.zoomBox;
    g.fillStyle = c.accent;
    g.globalAlpha = 0.18;
    g.fillRect(Math.min(from, to), AXIS, Math.abs(to - from), layout.bottom - AXIS);
    g.globalAlpha = 1;
  }
}

function trail(g, panel, line, color, thick) {
  g.save();
  g.beginPath();
  g.rect(layout.left, panel.top, layout.right - layout.left, panel.height);
  g.clip();
  g.beginPath();
  let pen = false;
  for (let p = lines.starts[line]; p < lines.starts[line + 1]; p += 1) {
    const event = lines.points[p];
    const lane = panel.lanes.indexOf(trace.words[trace.code[event]]);
    if (lane < 0) continue;
    g[pen ? "lineTo" : "moveTo"](x(trace.time[event]), laneY(panel, lane));
    pen = true;
  }
  g.strokeStyle = colors().sheet;
  g.lineWidth = thick + 2;
  g.stroke();
  g.strokeStyle = color;
  g.lineWidth = thick;
  g.stroke();
  g.restore();
}

/** Say in the page itself what is shown, for whoever reads it by a program. */
function report(took) {
  frames += 1;
  const panel = layout.panels[0];
  Object.assign(root.dataset, {
    state: "ready",
    events: trace.count,
    kind: state.kind,
    lines: pieces.lines,
    pieces: pieces.count,
    insight: panel.many,
    drawn: panel.drawn,
    dense: panel.dense,
    from: state.t0,
    to: state.t1,
    head: state.head ?? "",
    playing: state.playing,
    frames,
    frame: took.toFixed(1),
  });
  if (!root.dataset.first) root.dataset.first = performance.now().toFixed(0);
  ui.play.textContent = state.playing ? "Pause" : "Play";
  ui.rate.textContent = `${duration(rate())} a second`;
  const shown = state.head ?? (state.pointer !== undefined ? t(state.pointer) : null);
  ui.at.textContent = shown === null ? `${duration(state.t1 - state.t0)} in sight` : `${clock(trace.start + shown)} UTC`;
  ui.all.disabled = state.head === null;
  ui.canvas.setAttribute("aria-label", `${plural(pieces.lines, "lifeline")} over ${panel.lanes.length} types of events, ${clock(trace.start + state.t0)} to ${clock(trace.start + state.t1)} UTC`);
}
