// Applies the stretch controls to the pictures, without loading the page again.

const WAIT_MS = 250;
const form = document.getElementById("stretching");
let timer = 0;

function stretched(url, settings) {
  const changed = new URL(url, location.href);
  for (const [name, value] of settings) {
    if (value === "") changed.searchParams.delete(name);
    else changed.searchParams.set(name, value);
  }
  return changed.href;
}

function apply() {
  if (!form.reportValidity()) return;
  const names = ["stretch", "low", "high"];
  const settings = names.map((name) => [name, form.elements[name].value]);
  for (const picture of document.querySelectorAll(".gallery img")) {
    const wanted = stretched(picture.src, settings);
    if (picture.src !== wanted) picture.src = wanted;
    const link = picture.closest("a");
    if (link) link.href = stretched(link.href, settings);
  }
  history.replaceState(null, "", stretched(location.href, settings));
}

/** Check that the black percentile is below the white one. */
function check() {
  const { low, high } = form.elements;
  const both = low.value !== "" && high.value !== "";
  const wrong = both && Number(low.value) >= Number(high.value);
  high.setCustomValidity(wrong ? "must be above the black percentile" : "");
}

form.addEventListener("input", () => {
  check();
  clearTimeout(timer);
  timer = setTimeout(apply, WAIT_MS);
});
form.addEventListener("submit", (event) => {
  event.preventDefault();
  check();
  apply();
});
for (const button of form.querySelectorAll("[data-plain]")) button.hidden = true;

document.addEventListener(
  "error",
  (event) => {
    if (event.target instanceof HTMLImageElement) event.target.dataset.missing = "";
  },
  true,
);
document.addEventListener(
  "load",
  (event) => {
    if (event.target instanceof HTMLImageElement) delete event.target.dataset.missing;
  },
  true,
);
