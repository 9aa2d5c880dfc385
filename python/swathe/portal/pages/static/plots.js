// Draws plots with Bokeh, whose script comes from this portal, in the colours that are preferred.

const dark = matchMedia("(prefers-color-scheme: dark)");
const script = document.querySelector("script[data-bokeh]");
let drawn = [];

function load(url) {
  return new Promise((resolve, reject) => {
    const element = document.createElement("script");
    element.src = url;
    element.addEventListener("load", resolve);
    element.addEventListener("error", reject);
    document.head.append(element);
  });
}

async function draw() {
  for (const views of drawn) views.clear?.();
  drawn = [];
  for (const place of document.querySelectorAll("[data-plots]")) {
    const url = `${place.dataset.plots}?scheme=${dark.matches ? "dark" : "light"}`;
    const answer = await fetch(url);
    if (!answer.ok) continue;
    for (const item of (await answer.json()).items) {
      const target = document.getElementById(item.target_id);
      target.replaceChildren();
      drawn.push(await globalThis.Bokeh.embed.embed_item(item));
    }
  }
}

await load(script.dataset.bokeh);
await draw();
dark.addEventListener("change", draw);
