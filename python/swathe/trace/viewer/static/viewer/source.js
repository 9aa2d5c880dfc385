// Where data come from: the page itself, or asked for, again and again where they grow.

let known = null; // What was received before, which may have to be kept in part.

/** Read what was packed: whole, or what is another since (see packed.py), once or several times. */
function received(buffer) {
  let at = 0;
  while (at < buffer.byteLength) {
    const view = new DataView(buffer, at);
    const [length, size] = [view.getUint32(0, true), view.getUint32(4, true)];
    const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, at + 8, length)));
    at += 8 + length;
    if (!header.copies) {
      known = { header, bytes: new Uint8Array(buffer, at, size) };
      at += size;
      continue;
    }
    const bytes = new Uint8Array(size);
    let to = 0;
    for (const [from, until, many] of [...header.copies, [0, size, 0]]) {
      bytes.set(new Uint8Array(buffer, at, until - to), to);
      at += until - to;
      bytes.set(known.bytes.subarray(from, from + many), until);
      to = until + many;
    }
    known = { header, bytes };
  }
  return known;
}

/** Take data: the first, or those that came after. */
function take(buffer) {
  const before = trace;
  const wholly = !before || (state.t0 <= 0 && state.t1 >= before.end);
  const shift = before ? before.start : 0;
  trace = new Trace(received(buffer));
  cache.clear();
  state.hover = null;
  state.pinned = null;
  ui.tip.hidden = true;
  ui.detail.hidden = true;
  if (!trace.kinds.has(state.kind) && state.kind !== "stage") state.kind = trace.kinds.keys().next().value ?? "stage";
  if (before && before.count) {
    state.t0 += shift - trace.start;
    state.t1 += shift - trace.start;
    if (state.head !== null) state.head += shift - trace.start;
  }
  if (!before) {
    state.t0 = -0.01 * Math.max(trace.end, 10);
    state.t1 = 1.01 * Math.max(trace.end, 10);
  } else if (state.follow) {
    if (wholly) {
      state.t0 = -0.01 * Math.max(trace.end, 10);
      state.t1 = 1.01 * Math.max(trace.end, 10);
    } else toEnd();
  }
  rebuild();
}

const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

async function inflate(text) {
  const bytes = Uint8Array.fromBase64 ? Uint8Array.fromBase64(text) : Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

async function embedded(parts) {
  const pieces = await Promise.all([...parts].map((part) => inflate(part.textContent)));
  const whole = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  for (const part of parts) part.remove();
  return whole.buffer;
}

async function ask() {
  let seen = "";
  for (;;) {
    const began = performance.now();
    try {
      const answer = await fetch(`${settings.source}?seen=${seen}`, { cache: "no-store" });
      if (answer.status === 200) {
        take(await answer.arrayBuffer());
        seen = answer.headers.get("X-Version") ?? "";
      } else if (answer.status !== 204) throw new Error(`${answer.status}: ${(await answer.text()).slice(0, 300)}`);
      ui.live.textContent = settings.follow ? "live" : "";
      root.dataset.live = "yes";
    } catch (error) {
      // What is known may have moved on, but not as far as was told: all of it the next time.
      seen = "";
      if (!trace && !settings.follow) throw error;
      ui.live.textContent = `not reached: ${error.message}`;
      root.dataset.live = "no";
    }
    if (!settings.follow) return;
    // Three times as long as it took, so that a large trace leaves time for looking at it.
    await sleep(Math.max(settings.everyMs ?? 1000, 3 * (performance.now() - began)));
    while (document.hidden) await sleep(500);
  }
}

/** For programs: what is drawn, in numbers. */
root.told = {
  series: (name) => seriesOf(trace, trace.loads.find((load) => load.name === name)).map((line) => ({ ...line, times: [...(line.times ?? [])], values: [...(line.values ?? [])] })),
  place: (event) => [x(trace.time[event]), laneY(layout.panels[0], layout.panels[0].lanes.indexOf(trace.words[trace.code[event]]))],
};

async function start() {
  build();
  try {
    const parts = document.querySelectorAll("script.data");
    if (parts.length) take(await embedded(parts));
    else await ask();
  } catch (error) {
    root.dataset.state = "failed";
    ui.facts.textContent = `This trace cannot be shown: ${error.message}`;
    ui.facts.className = "notice bad";
    throw error;
  }
}

start();
