// Looking at events and lines: which is there, what it says.

/** The lines that go through an event. */
function through(event) {
  const found = [];
  const { points, starts } = lines;
  for (let p = points.indexOf(event); p >= 0; p = points.indexOf(event, p + 1)) {
    found.push(lower(starts, p + 1) - 1);
    if (found.length >= 2000) break;
  }
  return found;
}

/** The event at a place on the canvas, or the line. */
function at(px, py) {
  const panel = layout.panels.find((each) => py >= each.top - 4 && py <= each.top + each.height + 4);
  if (!panel || px < layout.left - 6 || px > layout.right + 6) return null;
  const near = (events, reach) => {
    const read = (event) => trace.time[event];
    const here = lower(events, t(px), read);
    let best = null;
    for (const i of [here - 1, here]) {
      if (i < 0 || i >= events.length) continue;
      const apart = Math.abs(x(trace.time[events[i]]) - px);
      if (apart <= reach && (!best || apart < best.apart)) best = { event: events[i], apart };
    }
    return best;
  };
  if (panel.kind === "marks") {
    const found = near(marksOf(panel.word), 6);
    return found && { event: found.event, lines: through(found.event), y: panel.top + 7 };
  }
  if (panel.kind !== "lines") return null;
  const step = panel.height / Math.max(1, panel.lanes.length);
  const lane = Math.round((panel.top + panel.height - py) / step - 0.5);
  if (lane >= 0 && lane < panel.lanes.length && Math.abs(laneY(panel, lane) - py) <= Math.min(9, step / 2)) {
    const found = near(trace.ofWord(panel.lanes[lane]), 8);
    if (found && (state.head === null || trace.time[found.event] <= state.head)) return { event: found.event, lines: through(found.event), y: py };
  }
  if (panel.many > SOME) return null;
  let best = null;
  for (const part of pieces.parts) {
    ranges(part, t(px - 6), t(px + 6), (from, to) => {
      for (let i = from; i < to; i += 1) {
        const [ya, yb] = [laneY(panel, part.kind[i] >> 16), laneY(panel, (part.kind[i] >> 8) & 255)];
        if (py < Math.min(ya, yb) - 3 || py > Math.max(ya, yb) + 3 || ya === yb) continue;
        // How far it is from a line, not from a place on it.
        const [wide, tall] = [x(part.x2[i]) - x(part.x1[i]), yb - ya];
        const apart = Math.abs((px - x(part.x1[i])) * tall - (py - ya) * wide) / Math.hypot(wide, tall);
        if (apart <= 4 && (!best || apart < best.apart)) best = { apart, line: part.line[i], x1: part.x1[i] };
      }
    });
  }
  if (!best) return null;
  for (let p = lines.starts[best.line]; p < lines.starts[best.line + 1]; p += 1) {
    if (trace.time[lines.points[p]] === best.x1 && panel.lanes.includes(trace.words[trace.code[lines.points[p]]])) {
      return { event: lines.points[p], lines: [best.line], y: py };
    }
  }
  return null;
}

function hover(found) {
  if (found?.event === state.hover?.event && found?.lines[0] === state.hover?.lines[0]) return;
  state.hover = found;
  root.dataset.hover = found ? trace.words[trace.code[found.event]] : "";
  tell(found ?? state.pinned);
  draw();
}

/** Show an event with all that it says. */
function tell(found) {
  ui.tip.hidden = !found;
  if (!found) return;
  const { event } = found;
  const rows = [["UTC", `${day(trace.start + trace.time[event])} ${clock(trace.start + trace.time[event])}`]];
  const other = trace.partner[event];
  if (other >= 0) rows.push(["stage took", duration(Math.abs(trace.time[event] - trace.time[other]))]);
  else if (trace.words[trace.code[event]].endsWith("_START")) rows.push(["stage", "has no end"]);
  if (found.lines.length === 1) {
    const first = lines.points[lines.starts[found.lines[0]]];
    rows.push(["since start", duration(trace.time[event] - trace.time[first])]);
  } else if (found.lines.length > 1) rows.push(["shared by", `${grouped(found.lines.length)}${found.lines.length >= 2000 ? " or more" : ""} lines`]);
  for (const name of trace.fields.keys()) {
    const value = trace.value(name, event);
    if (value !== undefined) rows.push([name, typeof value === "number" ? grouped(value).replace(/,(?=\d{3}\.)/, ",") : value]);
  }
  const list = make("dl", {}, ...rows.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, String(value))]));
  ui.tip.replaceChildren(make("strong", { class: "mono" }, trace.words[trace.code[event]]), list);
  const px = x(trace.time[event]);
  const lane = layout.panels[0].lanes.indexOf(trace.words[trace.code[event]]);
  const py = lane < 0 ? found.y : laneY(layout.panels[0], lane);
  const box = ui.tip.getBoundingClientRect();
  const left = px + 16 + box.width > layout.width ? px - 16 - box.width : px + 16;
  ui.tip.style.left = `${Math.max(4, left)}px`;
  ui.tip.style.top = `${Math.max(4, Math.min(py - 20, layout.height - box.height - 4))}px`;
}

function pin(found) {
  state.pinned = found;
  root.dataset.pinned = found ? trace.words[trace.code[found.event]] : "";
  tell(found);
  ui.detail.hidden = !found || found.lines.length !== 1;
  if (!ui.detail.hidden) {
    const [line] = found.lines;
    let before = null;
    const rows = [];
    for (let p = lines.starts[line]; p < lines.starts[line + 1]; p += 1) {
      const event = lines.points[p];
      const here = trace.time[event];
      const fields = [...trace.fields.keys()].filter((name) => !["HOST", "PROG", "LVL", "PID", "THREAD", "JOB", "TARGET", "OBJECT"].includes(name));
      const told = fields.map((name) => [name, trace.value(name, event)]).filter(([, value]) => value !== undefined);
      rows.push(
        make("tr", {}, make("th", { scope: "row", class: "mono" }, trace.words[trace.code[event]]), make("td", { class: "num" }, clock(trace.start + here)), make("td", { class: "num" }, before === null ? "" : `+${duration(here - before)}`), make("td", { class: "mono wrap" }, told.map(([name, value]) => `${name}=${value}`).join(" "))),
      );
      before = here;
    }
    ui.detail.replaceChildren(
      make("h2", {}, `${lines.kind} ${trace.name(lines, line)}: ${trace.header.outcomes[lines.outcome[line]]}`),
      make("div", { class: "table", tabindex: "0", role: "region", "aria-label": "Events of the line" }, make("table", {}, make("thead", {}, make("tr", {}, ...["Event", "UTC", "After", "Says"].map((name) => make("th", { scope: "col", class: ["UTC", "After"].includes(name) ? "num" : "" }, name)))), make("tbody", {}, ...rows))),
    );
  }
  draw();
}

/** Mark the lines whose id has a text in it. */
function find(text) {
  state.wanted = text;
  state.matched = [];
  if (text) {
    const many = lines.outcome.length;
    for (let line = 0; line < many; line += 1) if (trace.name(lines, line).includes(text)) state.matched.push(line);
  }
  ui.found.textContent = text ? plural(state.matched.length, "line") : "";
  root.dataset.found = state.matched.length;
  draw();
}

/** Go to the event before or after, of the kept line if there is one. */
function stepTo(by) {
  const kept = state.pinned;
  let next = -1;
  let of = null;
  if (kept?.lines.length === 1) {
    [of] = kept.lines;
    const mine = Array.from(lines.points.subarray(lines.starts[of], lines.starts[of + 1]));
    next = mine[mine.indexOf(kept.event) + by] ?? kept.event;
  } else {
    const shown = new Set(shownLanes());
    let from = kept ? kept.event + by : lower(trace.time, Math.max(0, state.t0));
    while (from >= 0 && from < trace.count && !shown.has(trace.words[trace.code[from]])) from += by;
    if (from < 0 || from >= trace.count) return;
    next = from;
  }
  const here = trace.time[next];
  if (here < state.t0 || here > state.t1) show(here - (state.t1 - state.t0) / 2, here + (state.t1 - state.t0) / 2);
  pin({ event: next, lines: of === null ? through(next) : [of], y: AXIS + 20 });
}
