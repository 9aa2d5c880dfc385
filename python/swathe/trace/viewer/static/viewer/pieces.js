// Pieces of line, and levels of them: those that fall into the same columns are counted once for
// each width of a column, so that a frame costs what there are pixels, not what there are events.

const SOME = 150000; // More in sight than these, and a level is used.
const SETTLED_MS = 150;
const LONGEST = 4095; // Columns: longer pieces are kept as they are in all levels.
const BLOCK = 256;
const LONG = 256; // Pieces longer than such a part of the run are looked through apart.

/** The pieces of all lines between chosen lanes, by the time they begin, and levels of them. */
class Pieces {
  constructor(trace, lines, shown) {
    const lane = new Int16Array(trace.words.length).fill(-1);
    const around = trace.words.map((word) => /_(START|END)$/.test(word) && trace.header.around.includes(word.replace(/_(START|END)$/, "")));
    shown.forEach((word, height) => {
      const code = trace.words.indexOf(word);
      if (code >= 0) lane[code] = height;
    });
    const { starts, points, outcome } = lines;
    const { time, code } = trace;
    // How many begin at each event: a sort by counting.
    const long = trace.end / LONG;
    const isLong = (from, to) => (time[to] - time[from] > long ? 1 : 0);
    const begin = [0, 1].map(() => new Uint32Array(trace.count + 1));
    let drawn = 0;
    const walk = (take) => {
      for (let line = 0; line < outcome.length; line += 1) {
        let before = -1;
        let alone = -1;
        for (let p = starts[line]; p < starts[line + 1]; p += 1) {
          const event = points[p];
          if (lane[code[event]] < 0) continue;
          if (before >= 0) {
            take(before, event, line);
            alone = -1;
          } else alone = event;
          before = event;
        }
        if (alone >= 0) take(alone, alone, line);
        if (before >= 0) drawn += 1;
      }
    };
    walk((from, to) => (begin[isLong(from, to)][from + 1] += 1));
    this.lines = drawn;
    this.parts = begin.map((places) => {
      for (let i = 0; i < trace.count; i += 1) places[i + 1] += places[i];
      const count = places[trace.count];
      // kind: from which lane, to which, and the outcome.
      return { count, x1: new Float64Array(count), x2: new Float64Array(count), kind: new Uint32Array(count), line: new Uint32Array(count), weight: null };
    });
    walk((from, to, line) => {
      const which = isLong(from, to);
      const part = this.parts[which];
      const at = begin[which][from]++;
      const how = around[code[from]] || around[code[to]] ? AROUND : outcome[line];
      part.x1[at] = time[from];
      part.x2[at] = time[to];
      part.kind[at] = (lane[code[from]] << 16) | (lane[code[to]] << 8) | how;
      part.line[at] = line;
    });
    for (const part of this.parts) part.blocks = blocks(part.x2);
    this.count = this.parts[0].count + this.parts[1].count;
    this.levels = new Map();
  }

  /** Give the pieces merged to columns of a width, a power of two. */
  level(width) {
    if (!this.levels.has(width)) {
      // Made of the level before, if it is there.
      const finer = Math.max(...[...this.levels.keys()].filter((each) => each < width));
      const parts = this.levels.get(finer) ?? this.parts;
      if (this.levels.size > 24) this.levels.delete(this.levels.keys().next().value);
      this.levels.set(width, parts.map((part) => merged(part, width)));
    }
    return this.levels.get(width);
  }

  /** Make a level when nothing else is to be done, and none that was to be made before. */
  later(width, then = () => {}) {
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => {
      this.level(width);
      then();
    }, SETTLED_MS);
  }

  /** What is drawn of a stretch of time: the pieces themselves, or a level if they are many. */
  within(t0, t1, perPixel) {
    let many = 0;
    for (const part of this.parts) ranges(part, t0, t1, (from, to) => (many += to - from));
    if (many <= SOME) return { parts: this.parts, many };
    const width = 2 ** Math.floor(Math.log2(perPixel));
    if (!this.levels.has(width)) {
      // While it is zoomed one that is near will do; this one is made when that is over.
      for (const near of [width / 2, width * 2, width / 4, width * 4, width / 8]) {
        if (!this.levels.has(near)) continue;
        this.later(width, draw);
        return { parts: this.levels.get(near), many };
      }
    }
    const parts = this.level(width);
    // Who zooms in will want the next one.
    if (!this.levels.has(width / 2)) this.later(width / 2);
    return { parts, many };
  }
}

/** Count pieces that begin and end in the same columns of a width, once. */
function merged(part, width) {
  // Small as long as it may be: what is merged fits into the caches of the processor.
  let slots = new Uint32Array(1 << 16);
  const begins = new Float64Array(part.count);
  const ends = new Float64Array(part.count);
  const kinds = new Uint32Array(part.count);
  const weights = new Uint32Array(part.count);
  let made = 0;
  const hash = (b, e, kind) => {
    const mixed = Math.imul(b | 0, 0x9e3779b1) ^ Math.imul(e - b, 0x85ebca6b) ^ Math.imul(kind, 0xc2b2ae35);
    return (mixed ^ (mixed >>> 15)) & (slots.length - 1);
  };
  const grow = () => {
    slots = new Uint32Array(4 * slots.length);
    for (let at = 0; at < made; at += 1) {
      if (ends[at] - begins[at] > LONGEST) continue;
      let slot = hash(begins[at], ends[at], kinds[at]);
      while (slots[slot]) slot = (slot + 1) & (slots.length - 1);
      slots[slot] = at + 1;
    }
  };
  const put = (b, e, kind, weight) => {
    begins[made] = b;
    ends[made] = e;
    kinds[made] = kind;
    weights[made] = weight;
    made += 1;
  };
  for (let i = 0; i < part.count; i += 1) {
    const b = Math.floor(part.x1[i] / width);
    const e = Math.floor(part.x2[i] / width);
    const kind = part.kind[i];
    const weight = part.weight ? part.weight[i] : 1;
    if (e - b > LONGEST) {
      put(b, e, kind, weight);
      continue;
    }
    if (2 * made > slots.length) grow();
    let slot = hash(b, e, kind);
    for (;;) {
      const at = slots[slot] - 1;
      if (at < 0) {
        slots[slot] = made + 1;
        put(b, e, kind, weight);
        break;
      }
      if (begins[at] === b && ends[at] === e && kinds[at] === kind) {
        weights[at] += weight;
        break;
      }
      slot = (slot + 1) & (slots.length - 1);
    }
  }
  const level = { count: made, x1: begins.slice(0, made), x2: ends.slice(0, made), kind: kinds.slice(0, made), weight: weights.slice(0, made) };
  for (let i = 0; i < made; i += 1) {
    level.x1[i] = (level.x1[i] + 0.5) * width;
    level.x2[i] = (level.x2[i] + 0.5) * width;
  }
  level.blocks = blocks(level.x2);
  return level;
}

function blocks(ends) {
  const latest = new Float64Array(Math.ceil(ends.length / BLOCK));
  for (let i = 0; i < ends.length; i += 1) {
    const at = (i / BLOCK) | 0;
    if (i % BLOCK === 0 || ends[i] > latest[at]) latest[at] = ends[i];
  }
  return latest;
}

/** Tell the stretches of a part that may have pieces between two times. */
function ranges(part, t0, t1, take) {
  const last = lower(part.x1, t1);
  for (let block = 0; block * BLOCK < last; block += 1) {
    if (part.blocks[block] < t0) continue;
    take(block * BLOCK, Math.min(last, (block + 1) * BLOCK));
  }
}
