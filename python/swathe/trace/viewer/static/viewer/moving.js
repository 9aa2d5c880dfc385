// Moving in time: zoom, pan, play.

function show(t0, t1) {
  const whole = Math.max(trace.end, 1);
  let width = Math.min(Math.max(t1 - t0, 20), whole * 1.5 + 10);
  const spare = width * 0.45;
  let from = Math.min(Math.max(t0, -spare), whole - width + spare);
  if (width >= whole * 1.1) from = Math.min(0, Math.max(t0, whole - width));
  state.t0 = from;
  state.t1 = from + width;
  draw();
}

function zoom(by, px = x((state.t0 + state.t1) / 2)) {
  const at = t(px);
  let width = (state.t1 - state.t0) * by;
  width = Math.min(Math.max(width, 20), Math.max(trace.end, 1) * 1.5);
  const part = (at - state.t0) / (state.t1 - state.t0);
  show(at - width * part, at + width * (1 - part));
}

function pan(part) {
  const by = (state.t1 - state.t0) * part;
  if (by < 0) setFollow(false);
  show(state.t0 + by, state.t1 + by);
}

function fit() {
  const spare = Math.max(trace.end, 10) * 0.01;
  show(-spare, trace.end + spare);
}

const rate = () => state.rate ?? (state.t1 - state.t0) / 12;

function speed(by) {
  state.rate = Math.min(Math.max(rate() * by, 1), 1e12);
  draw();
}

function toggle() {
  state.playing = !state.playing;
  if (state.playing) {
    setFollow(false);
    // As fast as it looks well, unless it was said otherwise: and no other when the view changes.
    state.rate ??= rate();
    if (state.head === null || state.head >= trace.end) state.head = Math.max(0, state.head === null ? state.t0 : 0);
    if (state.head < state.t0 || state.head > state.t1) show(state.head, state.head + state.t1 - state.t0);
    state.tick = performance.now();
  }
  draw();
}

function rewind() {
  state.playing = false;
  state.head = 0;
  const width = state.t1 - state.t0;
  show(-0.01 * width, 0.99 * width);
}

function stop() {
  state.playing = false;
  state.head = null;
  state.rate = null;
  draw();
}

function advance(now) {
  state.head += (rate() * Math.min(200, now - state.tick)) / 1000;
  state.tick = now;
  if (state.head >= trace.end) {
    state.head = trace.end;
    state.playing = false;
  }
  const width = state.t1 - state.t0;
  if (state.head > state.t0 + 0.85 * width && state.t1 < trace.end) {
    const from = state.head - 0.85 * width;
    state.t0 = from;
    state.t1 = from + width;
  }
}

function setFollow(on) {
  if (!settings.follow || state.follow === on) return;
  state.follow = on;
  ui.follow.setAttribute("aria-pressed", String(on));
  if (on) {
    stop();
    toEnd();
  }
}

function toEnd() {
  const width = state.t1 - state.t0;
  show(trace.end - 0.96 * width, trace.end + 0.04 * width);
}
