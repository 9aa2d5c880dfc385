// Keeps elements marked data-live up to date. The server renders them, so that there is one place
// that describes a job: this module only requests the page again after events.

const SOONEST_MS = 1000;
const POLL_MS = 3000;
const shown = new Map();
let asking = false;
let askedAt = 0;
let timer = 0;
let waiting = null;

const regions = () => [...document.querySelectorAll("[data-live][id]")];

/** Replace changed elements by new ones; unchanged pictures are not loaded again. */
function swap(fresh) {
  waiting = null;
  for (const old of regions()) {
    const made = fresh.getElementById(old.id);
    if (!made || shown.get(old.id) === made.innerHTML) continue;
    if (old.contains(document.activeElement)) {
      // Do not disturb the element in use; it is replaced when it loses the focus.
      waiting = fresh;
      continue;
    }
    shown.set(old.id, made.innerHTML);
    for (const item of made.querySelectorAll("[data-key]")) {
      const kept = old.querySelector(`[data-key="${CSS.escape(item.dataset.key)}"]`);
      if (kept) item.replaceWith(kept);
    }
    old.replaceChildren(...made.childNodes);
    for (const name of ["data-events", "data-poll", "data-phase", "data-live", "data-every"]) {
      if (made.hasAttribute(name)) old.setAttribute(name, made.getAttribute(name));
      else old.removeAttribute(name);
    }
  }
}

async function refresh() {
  if (asking) return soon();
  asking = true;
  askedAt = performance.now();
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (answer.ok && !answer.redirected) {
      swap(new DOMParser().parseFromString(await answer.text(), "text/html"));
    }
  } catch {
    // The server is not reachable; the next event or poll tries again.
  } finally {
    asking = false;
  }
}

/** Request the page again, at most once a second for any number of events. */
function soon() {
  if (timer) return;
  const wait = Math.max(0, askedAt + SOONEST_MS - performance.now());
  timer = setTimeout(() => {
    timer = 0;
    refresh();
  }, wait);
}

function poll(going, every) {
  const turn = setInterval(() => {
    if (!going()) clearInterval(turn);
    else if (!document.hidden) refresh();
  }, every);
}

const state = document.querySelector("[data-events]");
if (state) {
  const going = () => document.getElementById(state.id).hasAttribute("data-events");
  const events = new EventSource(state.dataset.events);
  let lost = 0;
  events.addEventListener("job", (event) => {
    lost = 0;
    if (["COMPLETED", "ERROR", "ABORTED"].includes(JSON.parse(event.data).phase)) events.close();
    soon();
  });
  events.addEventListener("error", () => {
    lost += 1;
    if (events.readyState !== EventSource.CLOSED && lost < 3) return;
    events.close();
    poll(going, POLL_MS);
  });
}

const list = document.querySelector("[data-every]");
if (list) {
  const every = 1000 * Number(list.dataset.every);
  poll(() => document.getElementById(list.id).hasAttribute("data-every"), every);
}

document.addEventListener("focusout", () => {
  setTimeout(() => {
    if (waiting) swap(waiting);
  });
});
