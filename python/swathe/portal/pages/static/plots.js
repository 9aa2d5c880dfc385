// Draws plots with Bokeh, whose script comes from this portal, in the preferred colour scheme.

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
  const scheme = dark.matches ? "dark" : "light";
  for (const views of drawn) views.clear?.();
  drawn = [];
  for (const place of document.querySelectorAll("[data-plots]")) {
    delete place.dataset.drawn;
    const answer = await fetch(`${place.dataset.plots}?scheme=${scheme}`);
    if (!answer.ok) continue;
    for (const item of (await answer.json()).items) {
      const target = document.getElementById(item.target_id);
      target.replaceChildren();
      drawn.push(await globalThis.Bokeh.embed.embed_item(item));
    }
    place.dataset.drawn = scheme;
  }
}

await load(script.dataset.bokeh);
await draw();
// Run one at a time, however often the scheme changes.
let turn = Promise.resolve();
dark.addEventListener("change", () => {
  turn = turn.then(draw);
});
