// The page: what it consists of, and the state that it shows.

const root = document.getElementById("viewer");
const settings = JSON.parse(root.dataset.settings || "{}");

function make(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

let trace = null;
let pieces = null;
let lines = null;
const state = {
  kind: settings.kind || "",
  order: settings.events || null, // lanes that were asked for, from below
  hidden: new Set(),
  loads: null, // names; null: the first ones
  marks: null, // words of rows of points
  scatter: null,
  t0: 0,
  t1: 1,
  head: null,
  playing: false,
  rate: null,
  follow: Boolean(settings.follow),
  hover: null,
  pinned: null,
  wanted: "",
  zoomBox: null,
};
const raster = new Raster();
const scatterRaster = new Raster();
const cache = new Map();
let palette = null;
let layout = null;
let dirty = false;
let frames = 0;

const ui = {};

function build() {
  root.replaceChildren();
  if (settings.bar !== false) {
    const mark = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    mark.setAttribute("viewBox", "0 0 24 24");
    mark.setAttribute("aria-hidden", "true");
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    path.setAttribute("fill", "currentColor");
    path.setAttribute("fill-rule", "evenodd");
    path.setAttribute("d", "M3 3h18v18H3zM5 5v14h14V5zM3 15.5 15.5 3H21v1.2L4.2 21H3z");
    mark.append(path);
    root.append(make("header", { class: "bar" }, make("div", {}, make("span", { class: "brand" }, mark, "Swathe trace"), (ui.live = make("span", { class: "who" })))));
  } else ui.live = make("span", { class: "quiet small", role: "status" });
  ui.title = make(settings.section ? "h2" : "h1", {}, root.dataset.title || "Trace");
  ui.facts = make("p", { class: "lede small" });
  const button = (key, label, title, action, more = {}) =>
    (ui[key] = make("button", { class: "slight", type: "button", title, onclick: action, ...more }, label));
  ui.kind = make("select", { id: "kind", onchange: () => choose({ kind: ui.kind.value }) });
  ui.find = make("input", { id: "find", type: "search", placeholder: "part of an id", oninput: () => find(ui.find.value) });
  ui.found = make("output", { class: "small quiet", for: "find" });
  ui.rate = make("output", { class: "small rate", "aria-label": "Speed" });
  ui.at = make("output", { class: "small at", "aria-label": "Time" });
  const tools = make(
    "div",
    { class: "tools", role: "toolbar", "aria-label": "Time" },
    make(
      "div",
      { class: "group" },
      button("rewind", "Rewind", "Back to the beginning (R)", rewind),
      button("play", "Play", "Play or pause (space)", toggle, { class: "slight main" }),
      button("slower", "Slower", "Half as fast ([)", () => speed(0.5)),
      ui.rate,
      button("faster", "Faster", "Twice as fast (])", () => speed(2)),
      button("all", "Show all", "No longer play (Escape)", stop),
    ),
    make(
      "div",
      { class: "group" },
      button("out", "\u2212", "Zoom out (\u2212)", () => zoom(2), { "aria-label": "Zoom out" }),
      button("in", "+", "Zoom in (+)", () => zoom(0.5), { "aria-label": "Zoom in" }),
      button("fit", "Whole run", "Everything (0)", fit),
    ),
    make("div", { class: "group" }, make("label", { for: "kind" }, "A line for each"), ui.kind),
    make("div", { class: "group" }, make("label", { for: "find" }, "Find"), ui.find, ui.found),
    settings.follow ? make("div", { class: "group" }, button("follow", "Follow", "Keep to the newest (F)", () => setFollow(!state.follow), { "aria-pressed": "true" })) : "",
  );
  ui.canvas = make("canvas", { tabindex: "0", role: "img", "aria-describedby": "keys" });
  ui.over = make("canvas", { class: "over", "aria-hidden": "true" });
  ui.tip = make("div", { class: "tip", role: "status", "aria-live": "polite", hidden: true });
  ui.plot = make("div", { class: "plot-area" }, ui.canvas, ui.over, ui.tip);
  ui.legend = make("div", { class: "legend" });
  ui.side = make("aside", { class: "side", "aria-label": "What is shown" });
  ui.detail = make("section", { class: "detail", "aria-live": "polite", hidden: true });
  ui.keys = make(
    "p",
    { class: "small quiet keys", id: "keys" },
    `${settings.section ? "Click here first. " : ""}Wheel or + \u2212: zoom. Drag or arrows: pan. Shift and drag: zoom to a box. Click: keep a line. Space: play. , and .: event before and after. Home, End: first, last. 0: whole run.`,
  );
  const stage = make("div", { class: "stage" }, make("div", { class: "above" }, ui.legend, ui.at), ui.plot, ui.keys, ui.detail);
  root.append(make(settings.bar === false ? "div" : "main", { class: "viewer", id: settings.bar === false ? undefined : "main" }, make("div", { class: "about" }, ui.title, ui.facts, settings.bar === false ? ui.live : ""), tools, make("div", { class: "lay" }, ui.side, stage)));
  listen();
}
