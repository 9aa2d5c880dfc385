// Updates the estimate while the user types: sends the form as its button would, and shows that
// part of the response.

const WAIT_MS = 600;
const form = document.getElementById("form");
const shown = document.getElementById("estimate");
const told = document.getElementById("told");
const drop = document.getElementById("drop");
const { targets, file } = form.elements;
const hint = shown.innerHTML;
let timer = 0;
let asked = null;

async function estimate() {
  clearTimeout(timer);
  asked?.abort();
  if (!targets.value.trim() && !file.files.length) {
    shown.innerHTML = hint;
    return;
  }
  const mine = (asked = new AbortController());
  const body = new FormData(form);
  body.set("do", "estimate");
  shown.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(form.action, { method: "POST", body, signal: mine.signal });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const found = page.getElementById("estimate");
    if (found) shown.replaceChildren(...found.childNodes);
    else fault(page.querySelector(".lede")?.textContent ?? `the server answered ${answer.status}`);
    told.textContent = summary();
  } catch (error) {
    if (error.name === "AbortError") return;
    fault("the server does not respond");
  }
  if (asked === mine) shown.removeAttribute("aria-busy");
}

function fault(words) {
  const notice = document.createElement("p");
  notice.className = "notice bad";
  notice.setAttribute("role", "alert");
  notice.textContent = words;
  shown.querySelector(":scope > :not(h2)")?.remove();
  shown.append(notice);
}

function summary() {
  const figures = [...shown.querySelectorAll(".figures > div")];
  return figures
    .map((each) => [...each.querySelectorAll("dt, dd")].map((part) => part.innerText).join(": "))
    .join("; ");
}

// Options of other operations than the chosen one do not count: they are hidden.
function showOptions() {
  for (const field of form.querySelectorAll("[data-operation]")) {
    field.hidden = field.dataset.operation !== form.elements.operation.value;
  }
}

function later(event) {
  showOptions();
  if (event.target.name === "name") return;
  clearTimeout(timer);
  timer = setTimeout(estimate, WAIT_MS);
}

form.addEventListener("input", later);
form.addEventListener("change", later);
document.getElementById("ask").addEventListener("click", (event) => {
  event.preventDefault();
  estimate();
});

for (const name of ["dragenter", "dragover"]) {
  form.addEventListener(name, (event) => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    drop.dataset.over = "";
  });
}
for (const name of ["dragleave", "drop"]) {
  form.addEventListener(name, () => delete drop.dataset.over);
}
form.addEventListener("drop", (event) => {
  if (!event.dataTransfer?.files.length) return;
  event.preventDefault();
  file.files = event.dataTransfer.files;
  estimate();
});

showOptions();
// The browser may have restored earlier input.
if (!shown.querySelector(".figures, .notice")) estimate();
