// Moves and zooms an image by tiles down to its pixels. Without this script there is a small picture.

const VALUE_MS = 60;
const BLINK_MS = 700;
const SCALE_PX = 120;
const STEPS = [1, 2, 5, 10, 15, 20, 30];
const stage = document.querySelector("[data-image]");
const state = document.querySelector("[data-state]");
const readout = document.querySelector("[data-readout]");
const cut = document.querySelector("[data-cut]");
const sliders = [...document.querySelectorAll("[data-plane]")];
const spectrum = document.querySelector("[data-spectrum]");
const field = (name) => document.getElementById(name);
const address = (what, values) =>
  `${stage.dataset.image.replace("{}", what)}&${new URLSearchParams(values)}`;

/** Return the indices of the plane that is shown, slowest axis first. */
function plane() {
  const axes = JSON.parse(stage.dataset.shape).length - 2;
  const indices = new Array(Math.max(axes, 0)).fill(0);
  for (const each of sliders) indices[Number(each.dataset.plane)] = Number(each.value) - 1;
  return axes > 0 ? { PLANE: indices.join(",") } : {};
}

function drawing() {
  return {
    BLACK: field("black").value,
    WHITE: field("white").value,
    STRETCH: field("stretch").value,
    COLOURS: field("colours").value,
    INVERT: field("invert").value,
  };
}

async function ask(what, values, signal) {
  const answer = await fetch(address(what, values), { signal });
  if (!answer.ok) throw new Error((await answer.text()).trim());
  return answer.json();
}

function tell(text) {
  state.textContent = text;
  state.hidden = !text;
  state.classList.toggle("bad", Boolean(text));
}

const number = (value) => (value === null ? "no value" : Number(value.toPrecision(7)).toString());

function sexagesimal(degrees, isHours) {
  const total = Math.round((Math.abs(degrees) / (isHours ? 15 : 1)) * 3600 * 100);
  const [whole, rest] = [Math.floor(total / 360000), total % 360000];
  const pad = (text) => String(text).padStart(2, "0");
  const seconds = ((rest % 6000) / 100).toFixed(isHours ? 2 : 1).padStart(isHours ? 5 : 4, "0");
  const sign = isHours ? "" : degrees < 0 ? "−" : "+";
  return `${sign}${pad(whole)}:${pad(Math.floor(rest / 6000))}:${seconds}`;
}

function angleText(degrees) {
  if (degrees >= 1) return `${degrees}°`;
  return degrees * 60 >= 1 ? `${Math.round(degrees * 60)}′` : `${+(degrees * 3600).toPrecision(3)}″`;
}

/** Return a round angle that is at most so many degrees. */
function roundAngle(most) {
  const units = [1, 1 / 60, 1 / 3600, 1 / 36000, 1 / 360000];
  for (const unit of units) {
    for (const step of [...STEPS].reverse()) if (step * unit <= most) return step * unit;
  }
  return most;
}

const SVG = "http://www.w3.org/2000/svg";

function element(name, attributes, text = "") {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.textContent = text;
  return made;
}

/** Draw the arrows to north and east, and the bar of the scale. */
function overlayOf(sky, pixels) {
  const overlay = element("svg", { class: "compass", viewBox: "0 0 160 110", "aria-hidden": "true" });
  const arrow = ([x, y], label) => {
    const length = Math.hypot(x, y) || 1;
    const [dx, dy] = [x / length, -y / length];
    const [tx, ty] = [50 + dx * 30, 46 + dy * 30];
    overlay.append(
      element("path", { d: `M50 46L${tx} ${ty}` }),
      element("text", { x: 50 + dx * 40, y: 50 + dy * 40, "text-anchor": "middle" }, label),
    );
  };
  arrow(sky.north, "N");
  arrow(sky.east, "E");
  const angle = roundAngle((SCALE_PX / pixels) * sky.pixel_deg);
  const width = (angle / sky.pixel_deg) * pixels;
  overlay.append(
    element("path", { d: `M8 100v-6M8 97h${width}M${8 + width} 100v-6` }),
    element("text", { x: 8 + width / 2, y: 90, "text-anchor": "middle" }, angleText(angle)),
  );
  return overlay;
}

function drawSpectrum({ values, wavelengths_m: metres, unit }, x, y) {
  const drawing = spectrum.querySelector("svg");
  const finite = values.filter((each) => each !== null);
  if (!finite.length) return;
  const [low, high] = [Math.min(...finite), Math.max(...finite)];
  const across = (at) => 10 + (620 * at) / Math.max(values.length - 1, 1);
  const up = (value) => 165 - (150 * (value - low)) / (high - low || 1);
  let path = "";
  let isDown = false;
  values.forEach((value, at) => {
    if (value !== null) path += `${isDown ? "L" : "M"}${across(at).toFixed(1)} ${up(value).toFixed(1)}`;
    isDown = value !== null;
  });
  const current = Number(sliders.at(-1)?.value ?? 1) - 1;
  drawing.replaceChildren(
    element("path", { class: "values", d: path }),
    element("path", { class: "mark", d: `M${across(current)} 8V172` }),
  );
  const ends = metres ? `, ${number(metres[0] * 1e9)} to ${number(metres.at(-1) * 1e9)} nm` : "";
  spectrum.querySelector("figcaption").textContent =
    `Pixel ${x}, ${y}: ${values.length} planes${ends}; ${number(low)} to ${number(high)} ${unit}`;
  spectrum.hidden = false;
}

async function start() {
  const [{ default: OpenSeadragon }, info] = await Promise.all([
    import(document.querySelector("script[data-viewer]").dataset.viewer),
    ask("description", plane()),
  ]);
  field("black").value = Number(info.black.toPrecision(6));
  field("white").value = Number(info.white.toPrecision(6));
  const still = stage.querySelector("[data-still]");
  const canvas = document.createElement("div");
  canvas.className = "canvas";
  stage.append(canvas);
  // The viewer would add a style unless there is one, which the policy of the pages does not allow.
  // This one is no style of HTML; swathe.css has its rule.
  const style = document.createElementNS(null, "style");
  style.setAttribute("data-openseadragon-mobile-css", "true");
  document.head.append(style);
  // It would warn of each tile that comes after the colours were changed.
  OpenSeadragon.console = { ...console, warn: () => {} };
  const viewer = new OpenSeadragon({
    element: canvas,
    showNavigationControl: false,
    maxZoomPixelRatio: 16,
    minZoomImageRatio: 0.8,
    visibilityRatio: 0.2,
    imageSmoothingEnabled: false,
    animationTime: matchMedia("(prefers-reduced-motion: reduce)").matches ? 0 : 0.4,
    gestureSettingsMouse: { clickToZoom: false },
    drawer: "canvas",
  });
  viewer.canvas.setAttribute("aria-label", `${still.alt}. Arrow keys move, plus and minus zoom.`);
  viewer.canvas.setAttribute("role", "application");
  const source = () => {
    const values = { ...plane(), ...drawing() };
    return {
      width: info.width,
      height: info.height,
      tileSize: info.tile,
      minLevel: 0,
      maxLevel: info.levels - 1,
      getTileUrl: (level, column, row) =>
        address("tile", { ...values, LEVEL: level, COLUMN: column, ROW: row }),
    };
  };
  const image = () => viewer.world.getItemAt(viewer.world.getItemCount() - 1);
  viewer.addHandler("open", () => {
    still.remove();
    stage.dataset.ready = "";
    goToPlace();
    follow();
  });
  viewer.addHandler("open-failed", ({ message }) => tell(message));
  viewer.open(source());

  async function goToPlace() {
    if (!stage.dataset.ra) return;
    const values = { RA: stage.dataset.ra, DEC: stage.dataset.dec };
    const at = await ask("pixel", { ...plane(), ...values }).catch(() => null);
    if (!at || at.x === null) return;
    const point = image().imageToViewportCoordinates(at.x + 0.5, info.height - at.y - 0.5);
    const side = Math.min(256 / info.width, 1);
    viewer.viewport.fitBounds(
      new OpenSeadragon.Rect(point.x - side / 2, point.y - side / 2, side, side),
      true,
    );
    const mark = document.createElement("div");
    mark.className = "target-mark";
    viewer.addOverlay({ element: mark, location: point, placement: "CENTER" });
  }

  /** Keep the compass, the bar of the scale and the address of the cut as the view is. */
  function follow() {
    if (!image()) return;
    const bounds = image().viewportToImageRectangle(viewer.viewport.getBounds(true));
    const left = Math.max(0, Math.floor(bounds.x));
    const right = Math.min(info.width, Math.ceil(bounds.x + bounds.width));
    const low = Math.max(0, Math.floor(info.height - bounds.y - bounds.height));
    const high = Math.min(info.height, Math.ceil(info.height - bounds.y));
    if (left < right && low < high) {
      const id = new URLSearchParams(stage.dataset.image.split("?")[1]).get("ID");
      const region = `[${left + 1}:${right},${low + 1}:${high}]`;
      cut.href = `/vo/sync?${new URLSearchParams({ ID: id, SUB: region })}`;
    }
    if (!info.sky) return;
    stage.querySelector(".compass")?.remove();
    stage.append(overlayOf(info.sky, canvas.clientWidth / bounds.width));
  }
  viewer.addHandler("viewport-change", follow);
  viewer.addHandler("resize", follow);

  const pixelAt = (position) => {
    if (!image()) return null;
    const point = image().viewportToImageCoordinates(viewer.viewport.pointFromPixel(position));
    const [x, y] = [Math.floor(point.x), info.height - 1 - Math.floor(point.y)];
    return x >= 0 && y >= 0 && x < info.width && y < info.height ? { X: x, Y: y } : null;
  };
  let drawings = 0;
  let wanted = null;
  let isAsking = false;
  async function showValue(at) {
    wanted = at;
    if (isAsking) return;
    isAsking = true;
    while (wanted) {
      const own = wanted;
      wanted = null;
      try {
        const pixel = await ask("value", { ...plane(), ...own });
        const parts = [`x ${pixel.x}, y ${pixel.y}: ${number(pixel.value)} ${pixel.unit}`.trim()];
        if (pixel.ra !== null) {
          parts.push(
            `${sexagesimal(pixel.ra, true)} ${sexagesimal(pixel.dec, false)} ICRS`,
            `l ${pixel.l.toFixed(4)}° b ${pixel.b.toFixed(4)}°`,
          );
        }
        readout.textContent = parts.join(" · ");
      } catch (error) {
        readout.textContent = error.message;
      }
      await new Promise((resolve) => setTimeout(resolve, VALUE_MS));
    }
    isAsking = false;
  }
  new OpenSeadragon.MouseTracker({
    element: viewer.container,
    moveHandler: ({ position }) => {
      const at = pixelAt(position);
      if (at) showValue(at);
    },
  });
  viewer.addHandler("canvas-click", async ({ position, quick }) => {
    const at = pixelAt(position);
    if (!quick || !at) return;
    showValue(at);
    if (spectrum) {
      const values = await ask("spectrum", { ...plane(), ...at }).catch((error) => tell(error.message));
      if (values) drawSpectrum(values, at.X, at.Y);
    }
  });

  function redraw() {
    if (!(Number(field("black").value) < Number(field("white").value))) {
      tell("Black at: expected less than white.");
      return;
    }
    tell("");
    const own = ++drawings;
    viewer.addTiledImage({
      tileSource: source(),
      success: ({ item }) => {
        // What was drawn before stays below until this is complete; only the last one stays.
        const removeOthers = () => {
          if (own !== drawings) return;
          for (let at = viewer.world.getItemCount() - 1; at >= 0; at -= 1) {
            const other = viewer.world.getItemAt(at);
            if (other !== item) viewer.world.removeItem(other);
          }
          stage.dataset.drawing = String(own);
        };
        if (item.getFullyLoaded()) removeOthers();
        else item.addOnceHandler("fully-loaded-change", removeOthers);
      },
    });
  }
  for (const each of ["stretch", "colours", "black", "white", "invert"]) {
    field(each).addEventListener("change", redraw);
  }
  for (const each of sliders) {
    each.addEventListener("input", () => {
      each.closest(".field").querySelector("output").textContent = each.value;
    });
    each.addEventListener("change", redraw);
  }
  field("stretch").form.addEventListener("submit", (event) => event.preventDefault());
}

/** Show the pictures of the same place one after another, in one frame. */
function startBlinking() {
  const box = document.querySelector("[data-blink]");
  if (!box) return;
  const links = [...document.querySelectorAll("[data-stamps] a")];
  const [frame, caption] = [box.querySelector("img"), box.querySelector("figcaption")];
  const button = box.querySelector("[data-blink-start]");
  let at = 0;
  let timer = 0;
  const show = (next) => {
    at = (next + links.length) % links.length;
    frame.src = links[at].querySelector("img").src;
    frame.alt = links[at].querySelector("img").alt;
    caption.textContent = `${at + 1} of ${links.length}: ${links[at].textContent.trim()}`;
  };
  const stop = () => {
    clearInterval(timer);
    timer = 0;
    caption.setAttribute("aria-live", "polite");
    button.textContent = "Blink";
    button.setAttribute("aria-pressed", "false");
  };
  button.addEventListener("click", () => {
    if (timer) {
      stop();
      return;
    }
    caption.setAttribute("aria-live", "off");
    button.textContent = "Stop";
    button.setAttribute("aria-pressed", "true");
    timer = setInterval(() => show(at + 1), BLINK_MS);
  });
  for (const each of box.querySelectorAll("[data-blink-step]")) {
    each.addEventListener("click", () => {
      stop();
      show(at + Number(each.dataset.blinkStep));
    });
  }
  show(0);
}

startBlinking();
start().catch((error) => tell(error.message));
