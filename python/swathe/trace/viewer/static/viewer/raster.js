// Counts of pieces in each pixel, made into a picture.

/** Counts of pieces in each pixel, one plane for each outcome, made into a picture. */
class Raster {
  constructor() {
    this.width = 0;
    this.height = 0;
  }

  begin(width, height) {
    if (width !== this.width || height !== this.height) {
      this.width = width;
      this.height = height;
      this.planes = PLANES.map(() => new Uint32Array(width * height));
      this.used = PLANES.map(() => false);
      // Of flat pieces: what is more in a column than in the one before it.
      this.steps = PLANES.map(() => new Int32Array((width + 1) * height));
      this.flat = PLANES.map(() => false);
      this.whole = new Map();
      this.last = -1;
      this.same = 0;
      this.image = new ImageData(width, height);
      this.out = new Uint32Array(this.image.data.buffer);
    }
    this.planes.forEach((plane, i) => this.used[i] && plane.fill(0));
    this.used.fill(false);
  }

  /** Count a piece; those that go from edge to edge at the same heights are drawn once, at last. */
  add(outcome, xa, ya, xb, yb, weight) {
    const { width } = this;
    if (xa >= 0 || xb <= width || ya === yb) {
      this.stroke(outcome, xa, ya, xb, yb, weight);
      return;
    }
    const slope = (yb - ya) / (xb - xa);
    const key = (outcome * 8192 + Math.round(ya - xa * slope)) * 8192 + Math.round(ya + (width - xa) * slope);
    // Side by side, most are alike.
    if (key === this.last) {
      this.same += weight;
      return;
    }
    this.keep();
    this.last = key;
    this.same = weight;
  }

  keep() {
    if (this.same) this.whole.set(this.last, (this.whole.get(this.last) ?? 0) + this.same);
    this.same = 0;
  }

  finish() {
    this.keep();
    this.last = -1;
    for (const [key, weight] of this.whole) {
      const left = Math.floor(key / 8192);
      this.stroke(Math.floor(left / 8192), 0, left % 8192, this.width, key % 8192, weight);
    }
    this.whole.clear();
    this.flat.forEach((flat, outcome) => flat && this.sum(outcome));
    this.flat.fill(false);
  }

  /** Make counts of the steps of flat pieces. */
  sum(outcome) {
    const { width, height } = this;
    const [plane, steps] = [this.planes[outcome], this.steps[outcome]];
    for (let y = 0, from = 0, to = 0; y < height; y += 1, from += 1) {
      let many = 0;
      for (let x = 0; x < width; x += 1, from += 1, to += 1) plane[to] += many += steps[from];
    }
    steps.fill(0);
  }

  stroke(outcome, xa, ya, xb, yb, weight) {
    const { width, height } = this;
    const plane = this.planes[outcome];
    this.used[outcome] = true;
    const dx = xb - xa;
    const dy = yb - ya;
    if (Math.abs(dy) >= Math.abs(dx)) {
      if (dy < 0) return this.stroke(outcome, xb, yb, xa, ya, weight);
      const first = Math.max(0, Math.round(ya));
      const last = Math.min(height - 1, Math.round(yb));
      const slope = dy ? dx / dy : 0;
      let x = xa + (first - ya) * slope + 0.5;
      if (Math.min(xa, xb) >= 0 && Math.max(xa, xb) < width - 1) {
        for (let y = first, row = first * width; y <= last; y += 1, row += width, x += slope) plane[row + (x | 0)] += weight;
        return undefined;
      }
      for (let y = first; y <= last; y += 1, x += slope) {
        if (x >= 0 && x < width) plane[y * width + (x | 0)] += weight;
      }
    } else {
      if (dx < 0) return this.stroke(outcome, xb, yb, xa, ya, weight);
      const steps = this.steps[outcome];
      this.flat[outcome] = true;
      const end = Math.min(width, Math.round(xb) + 1);
      let x = Math.max(0, Math.round(xa));
      // In each row it is a run of columns, up to where it is half a row further.
      const by = dy < 0 ? -1 : 1;
      const perRow = dy ? dx / Math.abs(dy) : Infinity;
      let row = Math.round(ya + ((x - xa) * dy) / dx);
      let until = xa + ((row - ya) * by + 0.5) * perRow;
      while (x < end) {
        const next = until < end ? Math.max(x, Math.ceil(until)) : end;
        if (row >= 0 && row < height) {
          steps[row * (width + 1) + x] += weight;
          steps[row * (width + 1) + next] -= weight;
        }
        x = next;
        row += by;
        until += perRow;
      }
    }
    return undefined;
  }

  /** Make the picture: the more pieces, the stronger; what failed lies above. */
  picture(colors, strong) {
    const { out, planes } = this;
    out.fill(0);
    for (const outcome of PLANES) {
      if (!this.used[outcome]) continue;
      const plane = planes[outcome];
      let most = 3;
      for (let i = 0; i < plane.length; i += 1) if (plane[i] > most) most = plane[i];
      const shades = shadesOf(colors[outcome], outcome === AROUND ? colors[outcome] : strong, outcome === FAILED ? 0.75 : 0.3);
      const scale = (shades.length - 1) / Math.log2(1 + most);
      const table = new Uint32Array(4096);
      for (let v = 1; v < 4096; v += 1) table[v] = shades[Math.min(255, Math.round(Math.log2(1 + v) * scale))];
      for (let i = 0; i < plane.length; i += 1) {
        const v = plane[i];
        if (v) out[i] = v < 4096 ? table[v] : shades[(Math.log2(1 + v) * scale) | 0];
      }
    }
    return this.image;
  }
}

function shadesOf([r, g, b], [sr, sg, sb], faintest) {
  const made = new Uint32Array(256);
  for (let i = 0; i < 256; i += 1) {
    const part = i / 255;
    const deep = Math.max(0, part - 0.5) * 1.1;
    const mix = (from, to) => Math.round(from + (to - from) * deep);
    const alpha = Math.round(255 * (faintest + (1 - faintest) * Math.min(1, part * 1.4)));
    made[i] = (alpha << 24) | (mix(b, sb) << 16) | (mix(g, sg) << 8) | mix(r, sr);
  }
  return made;
}
