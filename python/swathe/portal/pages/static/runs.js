// Updates the prediction of a run while the user changes its table: sends the form as its button
// would, and shows those parts of the response. Fields keep what the user types.

const WAIT_MS = 350;
const form = document.getElementById("form");
let timer = 0;
let asked = null;

function show(page) {
  for (const old of form.querySelectorAll("[data-part]")) {
    const part = page.getElementById(old.id);
    if (!part) continue;
    old.hidden = part.hidden;
    if (old.innerHTML !== part.innerHTML) old.replaceChildren(...part.childNodes);
  }
  for (const field of form.querySelectorAll("input[name], select[name]")) {
    const other = page.querySelector(`[name="${CSS.escape(field.name)}"]`);
    if (other?.getAttribute("aria-invalid")) field.setAttribute("aria-invalid", "true");
    else field.removeAttribute("aria-invalid");
  }
}

function fault(words) {
  const notice = document.createElement("p");
  notice.className = "notice bad";
  notice.setAttribute("role", "alert");
  notice.textContent = words;
  document.getElementById("error").replaceChildren(notice);
}

function summary() {
  const wrong = form.querySelector(".fault:not([hidden])");
  if (wrong) return wrong.textContent;
  return `Writing: ${document.getElementById("total").innerText.replace("\n", ", ")}`;
}

async function predict() {
  clearTimeout(timer);
  asked?.abort();
  const mine = (asked = new AbortController());
  const body = new FormData(form);
  body.set("do", "predict");
  const figures = document.getElementById("figures");
  figures.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(form.action, { method: "POST", body, signal: mine.signal });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (page.getElementById("figures")) show(page);
    else fault(page.querySelector(".lede")?.textContent ?? `the server answered ${answer.status}`);
    document.getElementById("told").textContent = summary();
  } catch (error) {
    if (error.name === "AbortError") return;
    fault("the server does not respond");
  }
  if (asked === mine) figures.removeAttribute("aria-busy");
}

if (form) {
  form.addEventListener("input", (event) => {
    if (["command", "choice"].includes(event.target.name)) return;
    clearTimeout(timer);
    timer = setTimeout(predict, WAIT_MS);
  });
  document.getElementById("predict").addEventListener("click", (event) => {
    event.preventDefault();
    predict();
  });
}
