// Plays the pictures of a superfile. Without this script links lead from picture to picture.

const AHEAD = 4;
const RETRY_MS = 1000;
const LIST = 1000;
const player = document.querySelector("[data-player]");
const { player: api, query } = player.dataset;
const count = Number(player.dataset.count);
const version = new URLSearchParams(query).get("v");
const picture = player.querySelector("img");
const slider = document.getElementById("at");
const speed = document.getElementById("speed");
const button = player.querySelector("[data-play]");
const loads = new Map();
const names = new Map();
let number = Number(player.dataset.number);
let turn = 0;
let loop = 0;
let playing = false;

const wrap = (at) => ((at % count) + count) % count;

/** Load a picture, and forget those that are far from it: memory stays bounded. */
function load(at) {
  if (!loads.has(at)) {
    const image = new Image();
    image.src = `${api}/${at}?${query}`;
    loads.set(at, { image, ready: image.decode() });
    // Whoever shows it sees the error.
    loads.get(at).ready.catch(() => loads.delete(at));
  }
  return loads.get(at);
}

function preload(at) {
  const near = new Set(Array.from({ length: AHEAD + 1 }, (_, step) => wrap(at + step)));
  for (const key of loads.keys()) if (!near.has(key)) loads.delete(key);
  for (const key of near) load(key).ready.catch(() => {});
}

/** Return the name of a picture, from the list of those around it. */
async function nameOf(at) {
  const start = at - (at % LIST);
  if (!names.has(start)) {
    const superfile = new URLSearchParams(query).get("superfile");
    const parameters = new URLSearchParams({ superfile, start, limit: LIST });
    names.clear();
    names.set(
      start,
      fetch(`${api}?${parameters}`).then((answer) => (answer.ok ? answer.json() : null)),
    );
  }
  const list = await names.get(start);
  // A superfile that was replaced has other names.
  return list?.version === version ? (list.pictures[at - start]?.name ?? "") : "";
}

async function show(at) {
  const own = ++turn;
  number = wrap(at);
  slider.value = number;
  const wanted = number;
  const { image, ready } = load(wanted);
  preload(wanted);
  let failed = false;
  await ready.catch(() => (failed = true));
  if (own !== turn) return;
  picture.src = image.src;
  picture.toggleAttribute("data-missing", failed);
  player.querySelector("[data-place]").textContent =
    `${(wanted + 1).toLocaleString("en")} of ${count.toLocaleString("en")}`;
  const address = new URL(location.href);
  address.searchParams.set("superfile", new URLSearchParams(query).get("superfile"));
  address.searchParams.set("picture", wanted);
  history.replaceState(null, "", address);
  const name = await nameOf(wanted).catch(() => "");
  if (own !== turn) return;
  picture.alt = `Picture ${name || wanted + 1}`;
  player.querySelector("[data-name]").textContent = name;
}

const pause = (time_ms) => new Promise((resolve) => setTimeout(resolve, time_ms));

async function play() {
  const own = ++loop;
  while (playing && own === loop) {
    const begin = performance.now();
    await show(number + 1);
    if (picture.hasAttribute("data-missing")) await pause(RETRY_MS);
    const left = 1000 / Number(speed.value) - (performance.now() - begin);
    await pause(Math.max(0, left));
  }
}

function setPlaying(value) {
  if (value === playing) return;
  playing = value;
  button.textContent = playing ? "Pause" : "Play";
  button.setAttribute("aria-pressed", String(playing));
  if (playing) play();
}

const KEYS = { ArrowLeft: -1, ArrowRight: 1 };

document.addEventListener("keydown", (event) => {
  const { target, key } = event;
  const typing = target.closest("input:not([type=range]), select, textarea");
  if (typing || event.ctrlKey || event.altKey || event.metaKey) return;
  if (key === " " && !target.closest("button, a")) setPlaying(!playing);
  else if (key in KEYS) {
    setPlaying(false);
    show(number + KEYS[key]);
  } else if (key === "Home" || key === "End") show(key === "Home" ? 0 : count - 1);
  else return;
  event.preventDefault();
});
button.addEventListener("click", () => setPlaying(!playing));
slider.addEventListener("input", () => show(Number(slider.value)));
for (const step of player.querySelectorAll("[data-step]")) {
  step.addEventListener("click", () => {
    setPlaying(false);
    show(number + Number(step.dataset.step));
  });
}
for (const each of player.querySelectorAll("[data-plain]")) each.hidden = true;
for (const each of player.querySelectorAll("[data-tools]")) each.hidden = false;
preload(number);
