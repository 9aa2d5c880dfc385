// A map of the sky that is moved and zoomed: coverage in HEALPix cells, outlines where there are few.
// Without this script there is a picture of the whole sky.

const STEPS = 5;
const OUTLINE_DEG = 12;
const CELL_DEG = 58.6; // side of a cell of order 0
const CELL_PX = 20; // least side of a cell on the map
const SETTLED_MS = 200;
const MOST_LISTED = 30;
const CLICK_PX = 4;
const WIDE_ZOOM = 4;
const MOST_ZOOM = 200000;
const GRIDS = [30, 15, 10, 5, 2, 1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01];
const RAD = Math.PI / 180;
// North pole of the galaxy (ICRS), and the galactic longitude of the celestial pole.
const POLE = { ra: 192.85948, dec: 27.12825, lon: 122.93192 };

const box = document.querySelector("[data-sky]");
const canvas = box.querySelector("canvas");
const readout = document.querySelector("[data-readout]");
const projections = await import(
  document.querySelector("script[data-projections]").dataset.projections
);
const { cornersOfCell, geoGraticule, geoPath } = projections;
const context = canvas.getContext("2d");
const dark = matchMedia("(prefers-color-scheme: dark)");
const view = { ra: 0, dec: 0, zoom: 1 };
const shades = new Map();
let projection = null;
let pixelsPerRad = 1;
let isWide = true;
let clipCosine = -1;
let cells = null;
let outlines = { images: [], more: false };
let marked = null;
let square = null;
let timer = 0;
let isQueued = false;
let asking = null;

const wrap = (degrees) => ((degrees % 360) + 360) % 360;

function vector(ra, dec) {
  const cos = Math.cos(dec * RAD);
  return [cos * Math.cos(ra * RAD), cos * Math.sin(ra * RAD), Math.sin(dec * RAD)];
}

const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const angles = ([x, y, z]) => [wrap(Math.atan2(y, x) / RAD), Math.asin(Math.max(-1, Math.min(1, z))) / RAD];

function galactic(ra, dec) {
  const [a, d, p] = [(ra - POLE.ra) * RAD, dec * RAD, POLE.dec * RAD];
  const b = Math.asin(Math.sin(d) * Math.sin(p) + Math.cos(d) * Math.cos(p) * Math.cos(a));
  const l = Math.atan2(
    Math.cos(d) * Math.sin(a),
    Math.sin(d) * Math.cos(p) - Math.cos(d) * Math.sin(p) * Math.cos(a),
  );
  return [wrap(POLE.lon - l / RAD), b / RAD];
}

/** Return the points of the galactic equator. */
function galaxy() {
  const [pole, [px, py]] = [vector(POLE.ra, POLE.dec), vector(POLE.ra, 0)];
  const across = [-py, px, 0];
  const up = [
    pole[1] * across[2] - pole[2] * across[1],
    pole[2] * across[0] - pole[0] * across[2],
    pole[0] * across[1] - pole[1] * across[0],
  ];
  return Array.from({ length: 181 }, (_, at) => {
    const [cos, sin] = [Math.cos(at * 2 * RAD), Math.sin(at * 2 * RAD)];
    return angles(across.map((each, axis) => cos * each + sin * up[axis]));
  });
}
const GALAXY = { type: "LineString", coordinates: galaxy() };

/** Set the projection of the view: near ones are conformal, so that squares of the sky are squares. */
function applyView() {
  const choice = document.getElementById("projection").value;
  isWide = view.zoom < WIDE_ZOOM || choice === "geoOrthographic";
  const name = isWide ? choice : "geoStereographic";
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  if (projection?.key !== `${name} ${width} ${height}`) {
    projection = projections[name]().reflectX(true).translate([width / 2, height / 2]).precision(0.7);
    projection.key = `${name} ${width} ${height}`;
    if (name === "geoOrthographic") projection.clipAngle(90);
    if (name === "geoStereographic") projection.clipAngle(140);
    clipCosine = { geoOrthographic: 0.001, geoStereographic: Math.cos(140 * RAD) }[name] ?? -2;
  }
  const whole = {
    geoOrthographic: Math.min(width, height) / 2.1,
    geoStereographic: Math.min(width, height) / 12,
  };
  pixelsPerRad = (whole[choice] ?? Math.min(width / 5.8, height / 2.95)) * view.zoom;
  // The scale of d3 is that in the middle, but of this projection twice as much.
  const scale = name === "geoStereographic" ? 2 * pixelsPerRad : pixelsPerRad;
  projection.rotate([-view.ra, -view.dec]).scale(scale);
}

/** Return the radius of the circle that is in view, degrees. */
function radius() {
  const size = Math.hypot(canvas.clientWidth, canvas.clientHeight) / 2;
  return Math.min(180, (size / pixelsPerRad / RAD) * 1.15);
}

/** Return the points of a closed line on the canvas; null if it is not wholly in view. */
function screen(corners, centre) {
  const points = [];
  const most = canvas.clientWidth / 2;
  for (const { at, ra, dec } of corners) {
    if (dot(at, centre) < clipCosine) return null;
    const point = projection([ra, dec]);
    if (!point) return null;
    const last = points.at(-1);
    // Across the edge of the sky.
    if (isWide && last && Math.abs(point[0] - last[0]) > most) return null;
    points.push(point);
  }
  return points;
}

function trace(points) {
  context.moveTo(points[0][0], points[0][1]);
  for (let at = 1; at < points.length; at += 1) context.lineTo(points[at][0], points[at][1]);
  context.closePath();
}

const corner = (at) => {
  const [ra, dec] = angles(at);
  return { at, ra, dec };
};

function shade(name) {
  const key = `${name} ${dark.matches}`;
  if (!shades.has(key)) shades.set(key, getComputedStyle(box).getPropertyValue(name).trim());
  return shades.get(key);
}

function drawCells(centre) {
  if (!cells) return;
  const near = Math.cos(Math.min(Math.PI, (radius() + CELL_DEG / 2 ** cells.order) * RAD));
  const levels = Array.from({ length: STEPS }, () => []);
  for (const { middle, corners, step } of cells.places) {
    if (dot(middle, centre) < near) continue;
    const points = screen(corners, centre);
    if (points) levels[step].push(points);
  }
  levels.forEach((paths, step) => {
    context.fillStyle = shade(`--step-${step + 1}`);
    for (const points of paths) {
      context.beginPath();
      trace(points);
      context.fill();
    }
  });
}

function drawOutlines(centre) {
  context.strokeStyle = shade("--accent");
  context.lineWidth = 1;
  context.globalAlpha = outlines.images.length > 1000 ? 0.5 : 0.9;
  // One by one: 5,000 in one path took 122 ms a frame, and take 22.
  for (const each of outlines.images) {
    each.points = screen(each.corners, centre);
    if (!each.points) continue;
    context.beginPath();
    trace(each.points);
    context.stroke();
  }
  context.globalAlpha = 1;
  if (marked?.points) {
    context.beginPath();
    trace(marked.points);
    context.strokeStyle = shade("--warn");
    context.lineWidth = 3;
    context.stroke();
  }
}

function draw() {
  isQueued = false;
  const ratio = devicePixelRatio || 1;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    }
  applyView();
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  const path = geoPath(projection, context);
  const centre = vector(view.ra, view.dec);
  context.beginPath();
  path({ type: "Sphere" });
  context.fillStyle = shade("--sky");
  context.fill();
  drawCells(centre);
  const step = GRIDS.find((each) => radius() / each >= 3) ?? 0.01;
  const grid = geoGraticule().step([step, step]);
  const reach = radius() + step;
  if (reach < 60) {
    const wide = Math.min(180, reach / Math.max(0.02, Math.cos(Math.min(89, Math.abs(view.dec) + reach) * RAD)));
    const [west, east] = [view.ra - wide, view.ra + wide].map((each) => Math.round(each / step) * step);
    const [south, north] = [view.dec - reach, view.dec + reach].map((each) =>
      Math.max(-90, Math.min(90, Math.round(each / step) * step)),
    );
    const extent = [[west, south], [east, north + step / 1000]];
    grid.extentMajor(extent).extentMinor(extent).precision(Math.max(step / 10, 0.001));
  }
  context.beginPath();
  path(grid());
  context.strokeStyle = shade("--line");
  context.lineWidth = 0.7;
  context.stroke();
  context.beginPath();
  path(GALAXY);
  context.strokeStyle = shade("--line-strong");
  context.lineWidth = 1.5;
  context.stroke();
  drawOutlines(centre);
  if (square) {
    const [x, y, other, below] = square;
    context.strokeStyle = shade("--warn");
    context.lineWidth = 2;
    context.strokeRect(Math.min(x, other), Math.min(y, below), Math.abs(other - x), Math.abs(below - y));
  }
  box.dataset.frames = String(Number(box.dataset.frames ?? 0) + 1);
}

function redraw() {
  if (!isQueued) requestAnimationFrame(draw);
  isQueued = true;
}

const dataset = box.dataset.dataset ? { dataset: box.dataset.dataset } : {};

async function loadCells() {
  let order = Number(box.dataset.coarsest);
  const pixels = (at) => (CELL_DEG / 2 ** at) * RAD * pixelsPerRad;
  while (order < Number(box.dataset.finest) && pixels(order + 1) > CELL_PX) order += 1;
  if (cells?.order === order) return;
  const answer = await fetch(`/sky/cells.json?${new URLSearchParams({ order, ...dataset })}`);
  if (!answer.ok) throw new Error(`cells: ${answer.status}`);
  const content = await answer.json();
  const most = Math.log(content.counts.reduce((a, b) => Math.max(a, b), 1) + 1);
  const places = content.cells.map((cell, at) => {
    const vectors = cornersOfCell(2 ** order, cell);
    const sum = [0, 1, 2].map((axis) => vectors.reduce((total, each) => total + each[axis], 0));
    const level = Math.floor((Math.log(content.counts[at] + 1) / most) * STEPS);
    return {
      middle: sum.map((each) => each / Math.hypot(...sum)),
      corners: vectors.map(corner),
      step: Math.min(STEPS - 1, level),
    };
  });
  cells = { order, places, allSky: content.all_sky };
}

async function loadOutlines() {
  asking?.abort();
  if (radius() > OUTLINE_DEG) {
    outlines = { images: [], more: true };
    return;
  }
  asking = new AbortController();
  const place = { ra: view.ra.toFixed(6), dec: view.dec.toFixed(6), radius: radius().toFixed(6) };
  const query = new URLSearchParams({ ...place, ...dataset });
  const answer = await fetch(`/sky/outlines.json?${query}`, { signal: asking.signal });
  if (!answer.ok) throw new Error(`outlines: ${answer.status}`);
  const content = await answer.json();
  for (const each of content.images) {
    each.corners = [];
    for (let at = 0; at < each.outline.length; at += 2) {
      const [ra, dec] = [each.outline[at], each.outline[at + 1]];
      each.corners.push({ at: vector(ra, dec), ra, dec });
    }
  }
  outlines = content;
  marked = null;
}

function list() {
  const { images, more } = outlines;
  const wide = radius() > OUTLINE_DEG;
  document.querySelector("[data-count]").textContent = wide
    ? "Zoom in to see outlines."
    : more
      ? "More than 5,000: zoom in to see outlines."
      : `${images.length.toLocaleString("en")} ${images.length === 1 ? "outline" : "outlines"}.`;
  if (cells?.allSky) {
    const count = `${cells.allSky} ${cells.allSky === 1 ? "image" : "images"}`;
    document.querySelector("[data-count]").textContent += ` Not drawn: ${count} of the whole sky.`;
  }
  const links = images.slice(0, MOST_LISTED).map((each) => {
    const item = document.createElement("li");
    const link = document.createElement("a");
    link.href = each.url;
    link.textContent = [each.name, each.band].filter(Boolean).join(" ");
    link.addEventListener("focus", () => mark(each));
    link.addEventListener("pointerenter", () => mark(each));
    item.append(link);
    return item;
  });
  document.querySelector("[data-images]").replaceChildren(...links);
  document.querySelector("[data-search]").href = searchAt(view.ra, view.dec);
}

function mark(image) {
  marked = image;
  redraw();
}

function searchAt(ra, dec, degrees = Math.min(radius() / 1.6, 90)) {
  const query = { q: `${ra.toFixed(6)} ${dec.toFixed(6)}`, radius: `${degrees.toPrecision(3)}deg` };
  return `/search?${new URLSearchParams({ ...query, ...dataset })}`;
}

/** Take the view from the address, `#RA,DEC,ZOOM`. */
function readAddress() {
  const [ra, dec, zoom] = location.hash.slice(1).split(",").map(Number);
  if (![ra, dec, zoom].every(Number.isFinite)) return;
  view.ra = wrap(ra);
  view.dec = Math.max(-90, Math.min(90, dec));
  view.zoom = Math.max(1, Math.min(MOST_ZOOM, zoom));
}

/** Load what the view needs once it rests. */
function settle() {
  clearTimeout(timer);
  timer = setTimeout(async () => {
    try {
      await Promise.all([loadCells(), loadOutlines()]);
    } catch (error) {
      if (error.name === "AbortError") return;
      document.querySelector("[data-count]").textContent = error.message;
      return;
    }
    list();
    redraw();
    box.dataset.ready = "";
    const address = new URL(location);
    address.hash = `${view.ra.toFixed(5)},${view.dec.toFixed(5)},${view.zoom.toPrecision(4)}`;
    history.replaceState(null, "", address);
  }, SETTLED_MS);
}

function move(ra, dec) {
  view.ra = wrap(ra);
  view.dec = Math.max(-90, Math.min(90, dec));
  redraw();
  settle();
}

function pan(dx, dy) {
  const degrees = 1 / pixelsPerRad / RAD;
  move(
    view.ra + (dx * degrees) / Math.max(0.05, Math.cos(view.dec * RAD)),
    view.dec + dy * degrees,
  );
}

function zoomTo(zoom, point = null) {
  const before = point && placeAt(point);
  view.zoom = Math.max(1, Math.min(MOST_ZOOM, zoom));
  applyView();
  const after = point && placeAt(point);
  if (before && after) {
    const turn = ((before[0] - after[0] + 540) % 360) - 180;
    if (Math.abs(turn) < 90) move(view.ra + turn, view.dec + before[1] - after[1]);
  }
  redraw();
  settle();
}

function placeAt([x, y]) {
  const place = projection.invert?.([x, y]);
  if (!place || !place.every(Number.isFinite)) return null;
  const back = projection(place);
  if (!back || Math.hypot(back[0] - x, back[1] - y) > 1) return null;
  return [wrap(place[0]), place[1]];
}

/** Return the longer side of a square that was drawn, degrees, along its middle lines. */
function sideOf([x, y, other, below], middle) {
  const [cx, cy] = [(x + other) / 2, (y + below) / 2];
  const centre = vector(...middle);
  const half = (point) => {
    const place = placeAt(point);
    return place ? Math.acos(Math.min(1, dot(vector(...place), centre))) / RAD : 0;
  };
  const across = half([x, cy]) + half([other, cy]);
  const down = half([cx, y]) + half([cx, below]);
  const flat = Math.max(Math.abs(other - x), Math.abs(below - y)) / pixelsPerRad / RAD;
  // Of some seconds, rounding of the cosine is larger than the side.
  return flat < 0.01 ? flat : Math.max(across, down);
}

function isWithin([x, y], points) {
  let inside = false;
  for (let at = 0, last = points.length - 1; at < points.length; last = at, at += 1) {
    const [[ax, ay], [bx, by]] = [points[at], points[last]];
    if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) inside = !inside;
  }
  return inside;
}

const pointers = new Map();
let start = null;
let pinch = 0;
const position = (event) => {
  const { left, top } = canvas.getBoundingClientRect();
  return [event.clientX - left, event.clientY - top];
};

function span() {
  const [a, b] = [...pointers.values()];
  return Math.hypot(a[0] - b[0], a[1] - b[1]);
}

canvas.addEventListener("pointerdown", (event) => {
  canvas.setPointerCapture(event.pointerId);
  pointers.set(event.pointerId, position(event));
  start = pointers.size === 1 ? position(event) : null;
  if (pointers.size === 2) pinch = span();
});
canvas.addEventListener("pointermove", (event) => {
  const point = position(event);
  const before = pointers.get(event.pointerId);
  if (before && pointers.size === 1) {
    if (document.getElementById("drag").value === "cut" && start) {
      square = [...start, ...point];
      redraw();
    } else {
      pan(point[0] - before[0], point[1] - before[1]);
    }
    pointers.set(event.pointerId, point);
  } else if (before && pointers.size === 2) {
    pointers.set(event.pointerId, point);
    const now = span();
    if (pinch > 0) zoomTo((view.zoom * now) / pinch);
    pinch = now;
  } else if (!before) {
    show(point);
  }
});

/** Tell the position under the pointer, and mark the smallest outline there. */
function show(point) {
  const place = placeAt(point);
  if (!place) return;
  const [l, b] = galactic(...place);
  const here = outlines.images.filter((each) => each.points && isWithin(point, each.points));
  if ((here[0] ?? null) !== marked) mark(here[0] ?? null);
  const names = here.length ? ` · ${here[0].name}${here.length > 1 ? ` and ${here.length - 1} more` : ""}` : "";
  readout.textContent =
    `RA ${place[0].toFixed(4)}° Dec ${place[1].toFixed(4)}° ICRS · l ${l.toFixed(4)}° b ${b.toFixed(4)}°${names}`;
}

function finish(event) {
  const point = position(event);
  pointers.delete(event.pointerId);
  if (!start || event.type === "pointercancel") {
    square = null;
    redraw();
    return;
  }
  const far = Math.hypot(point[0] - start[0], point[1] - start[1]);
  if (square && far > CLICK_PX) {
    const middle = placeAt([(square[0] + square[2]) / 2, (square[1] + square[3]) / 2]);
    const arcsec = middle ? sideOf(square, middle) * 3600 : 0;
    if (middle) {
      const targets = `${middle[0].toFixed(6)} ${middle[1].toFixed(6)} ${arcsec.toPrecision(5)}arcsec`;
      location.href = `/new?${new URLSearchParams({ targets, ...dataset })}`;
    }
  } else if (far <= CLICK_PX) {
    const place = placeAt(point);
    if (marked && place) location.href = marked.url;
    else if (place) location.href = searchAt(...place, (12 / pixelsPerRad / RAD));
  }
  square = null;
  start = null;
}
canvas.addEventListener("pointerup", finish);
canvas.addEventListener("pointercancel", finish);
canvas.addEventListener(
  "wheel",
  (event) => {
    event.preventDefault();
    zoomTo(view.zoom * 1.0015 ** -event.deltaY, position(event));
  },
  { passive: false },
);
canvas.addEventListener("keydown", (event) => {
  const step = Math.min(canvas.clientWidth, canvas.clientHeight) / 8;
  const actions = {
    ArrowLeft: () => pan(step, 0),
    ArrowRight: () => pan(-step, 0),
    ArrowUp: () => pan(0, step),
    ArrowDown: () => pan(0, -step),
    "+": () => zoomTo(view.zoom * 1.5),
    "=": () => zoomTo(view.zoom * 1.5),
    "-": () => zoomTo(view.zoom / 1.5),
    0: () => {
      view.zoom = 1;
      move(0, 0);
    },
    Enter: () => {
      location.href = searchAt(view.ra, view.dec);
    },
  };
  if (!actions[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  actions[event.key]();
  readout.textContent = `Middle: RA ${view.ra.toFixed(4)}° Dec ${view.dec.toFixed(4)}° ICRS`;
});
document.getElementById("projection").addEventListener("change", () => {
  redraw();
  settle();
});
document.getElementById("dataset").addEventListener("change", (event) => event.target.form.submit());
dark.addEventListener("change", redraw);
new ResizeObserver(redraw).observe(box);

readAddress();
addEventListener("hashchange", () => {
  readAddress();
  redraw();
  settle();
});
applyView();
redraw();
settle();
