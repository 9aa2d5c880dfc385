// Updates the estimate of an order while the user changes the form, and lets a box be drawn on the
// map: sends the form as its button would, and shows those parts of the response.

const WAIT_MS = 500;
const LEAST_DEGREES = 0.5;
const SIDES = ["west", "south", "east", "north"];
const form = document.getElementById("form");
const map = document.getElementById("map");
let timer = 0;
let asked = null;
let start = null;

async function estimate() {
  clearTimeout(timer);
  asked?.abort();
  if (!form.elements.collection.value) return;
  const mine = (asked = new AbortController());
  const body = new URLSearchParams(new FormData(form));
  body.set("do", "estimate");
  const shown = document.getElementById("estimate");
  shown.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(form.action, { method: "POST", body, signal: mine.signal });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (page.getElementById("estimate")) show(page);
    else fault(page.querySelector(".lede")?.textContent ?? `the server answered ${answer.status}`);
  } catch (error) {
    if (error.name === "AbortError") return;
    fault("the server does not respond");
  }
  if (asked === mine) shown.removeAttribute("aria-busy");
}

function show(page) {
  for (const old of form.querySelectorAll("[data-part]")) {
    const part = page.getElementById(old.id);
    if (!part || (old === map && start)) continue;
    old.hidden = part.hidden;
    if (old.innerHTML !== part.innerHTML) old.replaceChildren(...part.childNodes);
  }
  for (const field of form.querySelectorAll("input[name], select[name]")) {
    const other = page.querySelector(`[name="${CSS.escape(field.name)}"]`);
    if (other?.getAttribute("aria-invalid")) field.setAttribute("aria-invalid", "true");
    else field.removeAttribute("aria-invalid");
  }
  const figures = [...document.querySelectorAll("#estimate .figures > div")];
  document.getElementById("told").textContent = figures
    .map((each) => [...each.querySelectorAll("dt, dd")].map((part) => part.innerText).join(": "))
    .join("; ");
}

function fault(words) {
  const notice = document.createElement("p");
  notice.className = "notice bad";
  notice.setAttribute("role", "alert");
  notice.textContent = words;
  document.querySelector("#estimate > :not(h2)")?.remove();
  document.getElementById("estimate").append(notice);
}

function later(event) {
  if (event.target.name === "name") return;
  clearTimeout(timer);
  timer = setTimeout(estimate, WAIT_MS);
}

/** Longitude and latitude of the pointer. */
function place(event) {
  const { left, top, width, height } = map.firstElementChild.getBoundingClientRect();
  const within = (value) => Math.min(1, Math.max(0, value));
  return [
    within((event.clientX - left) / width) * 360 - 180,
    90 - within((event.clientY - top) / height) * 180,
  ];
}

/** Set the fields to the box between two places, and draw it. */
function draw([lon, lat], [otherLon, otherLat]) {
  const sides = [
    Math.min(lon, otherLon),
    Math.min(lat, otherLat),
    Math.max(lon, otherLon),
    Math.max(lat, otherLat),
  ];
  SIDES.forEach((name, at) => (form.elements[name].value = sides[at].toFixed(1)));
  const svg = map.firstElementChild;
  svg.querySelectorAll(".box").forEach((each) => each.remove());
  const box = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  const degree = svg.viewBox.baseVal.width / 360;
  const [west, south, east, north] = sides;
  const facts = {
    class: "box",
    x: (west + 180) * degree,
    y: (90 - north) * degree,
    width: (east - west) * degree,
    height: (north - south) * degree,
  };
  for (const [name, value] of Object.entries(facts)) box.setAttribute(name, value);
  svg.append(box);
}

map.addEventListener("pointerdown", (event) => {
  if (event.button || event.pointerType === "touch") return; // a finger scrolls the page
  event.preventDefault();
  map.setPointerCapture(event.pointerId);
  start = place(event);
});
map.addEventListener("pointermove", (event) => {
  if (start) draw(start, place(event));
});
for (const name of ["pointerup", "pointercancel"]) {
  map.addEventListener(name, (event) => {
    if (!start) return;
    const end = place(event);
    const [lon, lat] = start;
    start = null;
    if (Math.max(Math.abs(end[0] - lon), Math.abs(end[1] - lat)) < LEAST_DEGREES) return;
    draw([lon, lat], end);
    estimate();
  });
}
document.getElementById("anywhere").addEventListener("click", () => {
  for (const name of SIDES) form.elements[name].value = "";
  estimate();
});
document.getElementById("ask").addEventListener("click", (event) => {
  event.preventDefault();
  estimate();
});
form.addEventListener("input", later);
for (const each of document.querySelectorAll("[data-script]")) each.hidden = false;
// The browser may have restored earlier input.
if (!document.querySelector("#estimate .figures, #estimate .notice")) estimate();
