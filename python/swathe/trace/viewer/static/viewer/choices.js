// What may be chosen, and what is.

function shownLanes() {
  const lanes = state.order ? state.order.filter((word) => trace.lanes.includes(word)) : trace.lanes;
  return lanes.filter((word) => !state.hidden.has(word));
}

function allLanes() {
  if (!state.order) return trace.lanes;
  return [...state.order.filter((word) => trace.lanes.includes(word)), ...trace.lanes.filter((word) => !state.order.includes(word))];
}

function shownLoads() {
  const names = state.loads ?? firstLoads();
  return trace.loads.filter((load) => names.includes(load.name));
}

const firstLoads = () => settings.loads ?? trace.header.first_loads;

/** Rows of points that there may be: types that are no part of a stage, and what failed. */
function marks() {
  const alone = trace.words.filter((word, code) => trace.of[code].length && !/_(START|END)$/.test(word));
  return [...(trace.failed.length ? ["failed"] : []), ...alone.sort()];
}

const shownMarks = () => marks().filter((word) => (state.marks ?? ["failed"]).includes(word));
const marksOf = (word) => (word === "failed" ? trace.failed : trace.ofWord(word));

/** What a scatter may show: durations of stages and amounts. */
function scatters() {
  const made = [];
  for (const word of trace.words) {
    const events = trace.ofWord(word);
    if (!events.length) continue;
    const stage = word.replace(/_END$/, "");
    if (stage !== word && events.some((event) => trace.partner[event] >= 0)) made.push({ name: `${stage} duration`, word, unit: "s" });
    for (const [name, field] of trace.fields) {
      if (!["whole", "numbers", "few"].includes(field.how) || ["PID", "THREAD", "REQUEST"].includes(name)) continue;
      if (!Array.from(events.subarray(0, 50)).some((event) => trace.value(name, event) !== undefined)) continue;
      const unit = name.endsWith("BYTES") ? "bytes" : name.endsWith("_PERCENT") ? "%" : name.endsWith("_S") && !name.endsWith("_PER_S") ? "s" : "";
      made.push({ name: `${stage} ${name}`, word, field: name, unit });
    }
  }
  const rank = (each) => ["FETCH duration", "READ duration", "CUT duration"].indexOf(each.name) >>> 0;
  return made.sort((a, b) => rank(a) - rank(b) || a.name.localeCompare(b.name));
}

function choose(changes) {
  Object.assign(state, changes);
  rebuild();
}

function rebuild() {
  lines = trace.lines(state.kind);
  pieces = new Pieces(trace, lines, shownLanes());
  refreshSide();
  arrange();
  find(state.wanted);
  draw();
}

function refreshSide() {
  const lanes = allLanes();
  const open = new Map([...ui.side.querySelectorAll("details")].map((each) => [each.dataset.of, each.open]));
  const focused = document.activeElement?.closest?.(".side") ? document.activeElement.id : null;
  const scroll = ui.side.scrollTop;
  const group = (name, title, ...children) =>
    make("details", { "data-of": name, open: open.get(name) ?? true }, make("summary", {}, title), ...children);
  const check = (id, label, count, checked, action, more = {}) =>
    make("label", { class: "check", ...more }, make("input", { type: "checkbox", id, checked, onchange: (event) => action(event.target.checked) }), make("span", { class: "mono" }, label), make("span", { class: "count" }, count));
  const toggled = (all, name, on) => (on ? [...all, name] : all.filter((each) => each !== name));
  const events = group(
    "events",
    `Events (${shownLanes().length} of ${lanes.length})`,
    make(
      "div",
      { class: "group" },
      make("button", { class: "slight", type: "button", onclick: () => choose({ hidden: new Set(), order: null }) }, "All"),
      make("button", { class: "slight", type: "button", onclick: () => choose({ hidden: new Set(lanes) }) }, "None"),
    ),
    make("p", { class: "small quiet", id: "move" }, "Alt and arrows move one."),
    ...[...lanes].reverse().map((word) => {
      const row = check(`lane-${word}`, word, grouped(trace.ofWord(word).length), !state.hidden.has(word) && shownLanes().includes(word), (on) => {
        if (on) state.hidden.delete(word);
        else state.hidden.add(word);
        if (on && state.order && !state.order.includes(word)) state.order = [...state.order, word];
        rebuild();
      });
      row.addEventListener("keydown", (event) => {
        if (!event.altKey || !["ArrowUp", "ArrowDown"].includes(event.key)) return;
        event.preventDefault();
        const order = [...lanes];
        const at = order.indexOf(word);
        const to = at + (event.key === "ArrowUp" ? 1 : -1);
        if (to < 0 || to >= order.length) return;
        [order[at], order[to]] = [order[to], order[at]];
        state.order = order;
        rebuild();
      });
      return row;
    }),
  );
  const loadNames = state.loads ?? firstLoads();
  const loadRows = group(
    "loads",
    `Load-lines (${shownLoads().length} of ${trace.loads.length})`,
    ...trace.loads.map((load) =>
      check(`load-${load.name}`, load.name, load.unit, loadNames.includes(load.name), (on) => choose({ loads: toggled(loadNames, load.name, on) })),
    ),
  );
  const markNames = state.marks ?? ["failed"];
  const scatterList = scatters();
  const scatterSelect = make("select", { id: "scatter", onchange: (event) => choose({ scatter: event.target.value }) }, make("option", { value: "none" }, "none"), ...scatterList.map((each) => make("option", { value: each.name }, each.name)));
  state.scatter ??= scatterList[0]?.name ?? "none";
  scatterSelect.value = state.scatter;
  const points = group(
    "points",
    "Points",
    make("label", { for: "scatter", class: "small" }, "Scatter of"),
    scatterSelect,
    ...marks().map((word) => check(`mark-${word}`, word, grouped(marksOf(word).length), markNames.includes(word), (on) => choose({ marks: toggled(markNames, word, on) }))),
  );
  ui.side.replaceChildren(events, loadRows, points);
  ui.side.scrollTop = scroll;
  if (focused) document.getElementById(focused)?.focus();
  const kinds = [...trace.kinds.keys()].filter((kind) => kind !== "stage");
  ui.kind.replaceChildren(...[...kinds, "stage"].map((kind) => make("option", { value: kind }, kind)));
  ui.kind.value = state.kind;
  const counts = [0, 0, 0, 0];
  for (const outcome of lines.outcome) counts[outcome] += 1;
  ui.legend.replaceChildren(
    make("span", { class: "quiet" }, plural(pieces.lines, "lifeline")),
    ...trace.header.outcomes.flatMap((name, outcome) => (counts[outcome] ? [make("span", { class: `tone outcome-${outcome}` }, make("i", {}), `${name}: ${grouped(counts[outcome])}`)] : [])),
  );
  const hosts = trace.fields.get("HOST");
  const many = hosts?.how === "coded" ? hosts.words.length : hosts ? 1 : 0;
  const damaged = trace.header.damaged_count;
  ui.facts.textContent = trace.count
    ? `${plural(trace.count, "event")} in ${duration(trace.end)} from ${day(trace.start)} ${clock(trace.start)} UTC, ${plural(many, "host")}${trace.header.left_out ? "; older ones are left out" : ""}${damaged ? `; ${plural(damaged, "damaged line")} left out, the first: line ${trace.header.damaged[0]?.[0]}, ${trace.header.damaged[0]?.[1]}` : ""}.`
    : "No events yet.";
}
