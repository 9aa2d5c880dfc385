// Shows an array at an iteration as a volume that can be turned, with VTK. Without WebGL 2 there are
// three slices as pictures instead.

const FULL = 255;
const OPAQUE = 0.8;
const CELLS_ACROSS = 40;
const TURN_DEG = 10;
const ZOOM = 1.15;
const NEAR = 1.25;

const stage = document.querySelector("[data-volume]");
const state = document.querySelector("[data-state]");
const slider = document.getElementById("at");
const form = document.querySelector("form.fields");
const dark = matchMedia("(prefers-color-scheme: dark)");
const maps = JSON.parse(stage.dataset.maps);
const iterations = JSON.parse(stage.dataset.iterations).flatMap(([first, last, step]) =>
  Array.from({ length: (last - first) / step + 1 }, (_, at) => first + at * step),
);

function tell(text, bad = false) {
  state.textContent = text;
  state.hidden = !text;
  state.classList.toggle("bad", bad);
}

function hasWebgl() {
  const context = document.createElement("canvas").getContext("webgl2");
  context?.getExtension("WEBGL_lose_context")?.loseContext();
  return context !== null;
}

function showSlices(reason) {
  tell(`${reason} These are three slices; change them below.`);
  const template = document.querySelector("template[data-slices]");
  template.replaceWith(template.content);
  stage.hidden = true;
  for (const each of document.querySelectorAll("[data-tools]")) each.hidden = true;
}

/** Return a volume of the server: bytes, and what they mean. */
async function fetchVolume(iteration, signal) {
  const address = `${stage.dataset.volume}/${iteration}/volume`;
  const query = new URLSearchParams({ region: stage.dataset.region });
  const answer = await fetch(`${address}?${query}`, { signal });
  if (!answer.ok) {
    const reason = await answer.json().catch(() => null);
    throw new Error(reason?.error ?? `the portal answered ${answer.status}`);
  }
  const header = (name) => answer.headers.get(`Volume-${name}`) ?? "";
  const numbers = (name) => header(name).split(" ").map(Number);
  const voxels = new Uint8Array(await answer.arrayBuffer());
  const shape = numbers("Shape");
  const length = shape.reduce((product, each) => product * each, 1);
  if (shape.length !== 3 || voxels.length !== length) {
    throw new Error(`expected ${length} bytes, found ${voxels.length}`);
  }
  return {
    voxels,
    shape,
    block: numbers("Block"),
    first: header("Region").split(",").map((each) => parseInt(each, 10)),
    dims: header("Dims").split(" ").map(decodeURIComponent),
    offset: Number(header("Offset")),
    scale: Number(header("Scale")),
    low: Number(header("Low")),
    high: Number(header("High")),
    hasBlank: header("Blank") !== "",
    units: decodeURIComponent(header("Units")),
  };
}

const rgb = (colour) => [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16) / FULL);

/** Return a colour of the style sheet, as red, green and blue from 0 to 1. */
function styleColour(element, property) {
  return getComputedStyle(element)[property].match(/[\d.]+/g).slice(0, 3).map((each) => each / FULL);
}

/** Return the value of a field, else another. */
function field(name, other) {
  const { value } = form.elements[name];
  return value === "" || !Number.isFinite(Number(value)) ? other : Number(value);
}

class View {
  constructor(vtk) {
    this.window = vtk.vtkGenericRenderWindow.newInstance();
    this.image = vtk.vtkImageData.newInstance();
    this.array = vtk.vtkDataArray;
    this.mapper = vtk.vtkVolumeMapper.newInstance();
    this.volume = vtk.vtkVolume.newInstance();
    this.colours = vtk.vtkColorTransferFunction.newInstance();
    this.opacity = vtk.vtkPiecewiseFunction.newInstance();
    this.axes = vtk.vtkCubeAxesActor.newInstance();
    this.window.setContainer(stage);
    this.renderer = this.window.getRenderer();
    this.camera = this.renderer.getActiveCamera();
    this.mapper.setInputData(this.image);
    this.volume.setMapper(this.mapper);
    const look = this.volume.getProperty();
    look.setRGBTransferFunction(0, this.colours);
    look.setScalarOpacity(0, this.opacity);
    look.setInterpolationTypeToLinear();
    this.axes.setCamera(this.camera);
    this.shape = "";
  }

  /** Put a volume in place of the one before; another shape is looked at anew. */
  put(volume) {
    this.data = volume;
    const [nz, ny, nx] = volume.shape;
    this.image.setDimensions(nx, ny, nz);
    this.image.setSpacing(volume.block.toReversed());
    const corner = volume.first.map((first, axis) => first + (volume.block[axis] - 1) / 2);
    this.image.setOrigin(corner.toReversed());
    const values = { name: "voxels", numberOfComponents: 1, values: volume.voxels };
    this.image.getPointData().setScalars(this.array.newInstance(values));
    this.image.modified();
    this.mapper.setSampleDistance(0.7 * Math.min(...volume.block));
    const shape = `${volume.shape} ${volume.block} ${volume.first}`;
    if (shape !== this.shape) {
      if (this.shape === "") {
        this.renderer.addVolume(this.volume);
        this.renderer.addActor(this.axes);
      }
      this.shape = shape;
      this.axes.setDataBounds(this.volume.getBounds());
      this.axes.setAxisLabels(volume.dims.toReversed());
      this.reset();
    }
    this.colour();
  }

  /** Look from above the corner of the axes, with the first axis up. */
  reset() {
    this.camera.setFocalPoint(0, 0, 0);
    this.camera.setPosition(1, -1.6, 0.9);
    this.camera.setViewUp(0, 0, 1);
    this.renderer.resetCamera();
    this.camera.dolly(NEAR);
    this.draw();
  }

  /** Set colours and opacity from the fields of the page. */
  colour() {
    const { offset, scale, hasBlank, units, block } = this.data;
    const low = field("low", this.data.low);
    const high = field("high", this.data.high);
    const byteOf = (value) => (value - offset) / (scale || 1);
    const from = byteOf(low);
    const to = Math.max(byteOf(high), from + 1e-3);
    const map = maps[form.elements.colours.value];
    this.colours.removeAllPoints();
    map.forEach((colour, at) => {
      this.colours.addRGBPoint(from + ((to - from) * at) / (map.length - 1), ...rgb(colour));
    });
    const ramp = Number(document.getElementById("ramp").value);
    // Byte 0 is no value: nothing is drawn there, whatever the range.
    const clear = Math.max(from + (to - from) * ramp, hasBlank ? 0.5 : -Infinity);
    this.opacity.removeAllPoints();
    this.opacity.addPoint(Math.min(0, clear) - 1, 0);
    this.opacity.addPoint(Math.min(clear, to - 1e-4), 0);
    this.opacity.addPoint(to, OPAQUE);
    this.opacity.addPoint(Math.max(FULL, to) + 1, OPAQUE);
    const bounds = this.volume.getBounds();
    const diagonal = Math.hypot(bounds[1] - bounds[0], bounds[3] - bounds[2], bounds[5] - bounds[4]);
    const strength = 10 ** Number(document.getElementById("opacity").value);
    const unit = Math.max(diagonal, 1) / CELLS_ACROSS / strength;
    this.volume.getProperty().setScalarOpacityUnitDistance(0, unit);
    const set = (name, text) => (document.querySelector(`[data-${name}]`).textContent = text);
    const number = (value) => (Number.isFinite(value) ? String(Number(value.toPrecision(4))) : "–");
    set("low", number(low));
    set("high", number(high));
    set("units", units);
    const cells = block.every((each) => each === 1) ? "" : `a voxel is ${block.join(" × ")} cells`;
    set("block", cells);
    const paint = document.querySelector("canvas[data-scale]").getContext("2d");
    const gradient = paint.createLinearGradient(0, 0, 256, 0);
    map.forEach((colour, at) => gradient.addColorStop(at / (map.length - 1), colour));
    paint.fillStyle = gradient;
    paint.fillRect(0, 0, 256, 1);
    this.style();
  }

  /** Take background and ink from the style sheet. */
  style() {
    this.renderer.setBackground(styleColour(stage, "backgroundColor"));
    const ink = styleColour(stage, "color");
    const text = { fontColor: getComputedStyle(stage).color, fontFamily: "sans-serif" };
    this.axes.setAxisTextStyle(text);
    this.axes.setTickTextStyle(text);
    this.axes.getProperty().setColor(...ink);
    this.draw();
  }

  turn(azimuth_deg, elevation_deg) {
    this.camera.azimuth(azimuth_deg);
    this.camera.elevation(elevation_deg);
    this.camera.orthogonalizeViewUp();
    this.draw();
  }

  zoom(factor) {
    this.camera.dolly(factor);
    this.draw();
  }

  draw() {
    this.renderer.resetCameraClippingRange();
    this.window.getRenderWindow().render();
  }

  resize() {
    this.window.resize();
    this.draw();
  }
}

let view = null;
let request = new AbortController();

/** Show an iteration; one that is asked for meanwhile takes its place. */
async function show(iteration) {
  request.abort();
  request = new AbortController();
  const { signal } = request;
  document.getElementById("at-value").textContent = iteration;
  stage.setAttribute("aria-busy", "true");
  try {
    const volume = await fetchVolume(iteration, signal);
    view.put(volume);
    tell(Number.isNaN(volume.low) ? "There is no value at this iteration." : "");
    document.querySelector("[data-iteration]").textContent = iteration;
    form.elements.iteration.value = iteration;
    stage.dataset.shown = iteration;
    const address = new URL(location.href);
    address.searchParams.set("iteration", iteration);
    history.replaceState(null, "", address);
  } catch (error) {
    if (!signal.aborted) tell(`Iteration ${iteration} cannot be shown: ${error.message}`, true);
  } finally {
    if (!signal.aborted) stage.removeAttribute("aria-busy");
  }
}

function step(by) {
  const at = Math.min(Math.max(Number(slider.value) + by, 0), iterations.length - 1);
  if (at === Number(slider.value)) return;
  slider.value = at;
  show(iterations[at]);
}

const KEYS = {
  ArrowLeft: () => view.turn(TURN_DEG, 0),
  ArrowRight: () => view.turn(-TURN_DEG, 0),
  ArrowUp: () => view.turn(0, -TURN_DEG),
  ArrowDown: () => view.turn(0, TURN_DEG),
  "+": () => view.zoom(ZOOM),
  "=": () => view.zoom(ZOOM),
  "-": () => view.zoom(1 / ZOOM),
  0: () => view.reset(),
  ",": () => step(-1),
  ".": () => step(1),
};

function listen() {
  stage.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || !(event.key in KEYS)) return;
    event.preventDefault();
    KEYS[event.key]();
  });
  slider.addEventListener("input", () => show(iterations[Number(slider.value)]));
  for (const name of ["opacity", "ramp"]) {
    document.getElementById(name).addEventListener("input", () => view.data && view.colour());
  }
  for (const name of ["low", "high", "colours"]) {
    form.elements[name].addEventListener("input", () => view.data && view.colour());
  }
  dark.addEventListener("change", () => view.style());
  new ResizeObserver(() => view.resize()).observe(stage);
}

async function begin() {
  if (!hasWebgl()) {
    showSlices("This browser has no WebGL 2, which volumes need.");
    return;
  }
  tell("Loading.");
  try {
    const vtk = await import(document.querySelector("script[data-vtk]").dataset.vtk);
    for (const each of document.querySelectorAll("[data-tools]")) each.hidden = false;
    for (const each of document.querySelectorAll("[data-plain]")) each.hidden = true;
    stage.hidden = false;
    view = new View(vtk);
  } catch (error) {
    showSlices(`The volume cannot be drawn here: ${error.message}.`);
    return;
  }
  const first = Number(stage.dataset.iteration);
  slider.max = Math.max(iterations.length - 1, 0);
  slider.value = Math.max(iterations.indexOf(first), 0);
  listen();
  await show(first);
}

await begin();
