// Draws a trace: lifelines, load-lines and points on one axis of time. All that is shown comes from
// one packed buffer (see packed.py): in the page itself, or asked for, again and again when it grows.
//
// What is dense is drawn from levels: pieces of line that fall into the same columns are counted once
// for each width of a column, so that a frame costs what there are pixels, not what there are events.
"use strict";

(() => {
  const FEW = 5000; // Pieces of line that are drawn one by one.
  const SOME = 150000; // More in sight than these, and a level is used.
  const SETTLED_MS = 150;
  const LONGEST = 4095; // Columns: longer pieces are kept as they are in all levels.
  const BLOCK = 256;
  const MOST_PIXELS = 2.6e6;
  const GUTTER = 128;
  const RIGHT = 14;
  const OVERVIEW = 30; // Height of the whole run, above all.
  const AXIS = OVERVIEW + 44; // Where the lifelines begin, below the times.
  const APART = ["HOST", "DEVICE", "INTERFACE", "STORE"];
  const SERIES = ["--c-1", "--c-2", "--c-3", "--c-4", "--c-5", "--c-6"];
  const TYPES = { u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, i4: Int32Array, f8: Float64Array };
  const DONE = 0;
  const UNFINISHED = 2;
  const FAILED = 3;
  const AROUND = 4; // Of pieces to and from what is around targets: waiting is nobody's outcome.
  const PLANES = [AROUND, DONE, 1, UNFINISHED, FAILED]; // The last lies above.
  const LONG = 256; // Pieces longer than such a part of the run are looked through apart.

  const root = document.getElementById("viewer");
  const settings = JSON.parse(root.dataset.settings || "{}");

  // ---------------------------------------------------------------- what is shown

  const rising = (data) => Boolean(data && "first" in data);

  /** The columns of a trace. Times are microseconds after its first event. */
  class Trace {
    constructor(buffer) {
      const length = new DataView(buffer).getUint32(0, true);
      const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
      const array = (data) => new TYPES[data.type](buffer, 8 + length + data.at, data.count);
      const summed = (data, made) => {
        const steps = array(data);
        let sum = rising(data) ? data.first - (steps.length ? steps[0] : 0) : 0;
        for (let i = 0; i < steps.length; i += 1) made[i] = sum += steps[i];
        return made;
      };
      this.header = header;
      this.count = header.count;
      this.start = header.start_us;
      this.time = summed(header.time, new Float64Array(header.count));
      this.words = header.events;
      this.code = array(header.event);
      this.outcome = array(header.outcome);
      // In the buffer itself: nobody else reads it.
      this.partner = array(header.partner);
      for (let i = 0; i < this.count; i += 1) this.partner[i] = this.partner[i] ? i + this.partner[i] : -1;
      this.lanes = header.lanes;
      this.loads = header.loads;
      this.end = this.count ? this.time[this.count - 1] : 0;
      this.fields = new Map();
      for (const field of header.fields) {
        const kept = { ...field };
        if (field.data) kept.data = array(field.data);
        if (field.index) kept.index = summed(field.index, new Uint32Array(field.index.count));
        this.fields.set(field.name, kept);
      }
      this.kinds = new Map();
      for (const each of header.kinds) {
        const starts = new Uint32Array(each.count + 1);
        array(each.lengths).forEach((many, i) => (starts[i + 1] = starts[i] + many));
        const points = summed(each.points, new Int32Array(each.points.count));
        this.kinds.set(each.kind, { kind: each.kind, starts, points, outcome: array(each.outcome) });
      }
      this.index();
    }

    /** Find the events of each type. */
    index() {
      const counts = new Uint32Array(this.words.length);
      for (let i = 0; i < this.count; i += 1) counts[this.code[i]] += 1;
      this.of = Array.from(counts, (many) => new Uint32Array(many));
      counts.fill(0);
      for (let i = 0; i < this.count; i += 1) this.of[this.code[i]][counts[this.code[i]]++] = i;
      this.failed = [];
      for (let i = 0; i < this.count; i += 1) if (this.outcome[i] === FAILED) this.failed.push(i);
    }

    ofWord(word) {
      const code = this.words.indexOf(word);
      return code < 0 ? new Uint32Array(0) : this.of[code];
    }

    /** What an event has of a field; undefined: nothing. */
    value(name, event) {
      const field = this.fields.get(name);
      if (!field) return undefined;
      if (field.how === "same") return field.value ?? undefined;
      if (field.how === "coded") return field.data[event] ? field.words[field.data[event] - 1] : undefined;
      if (field.how === "whole") return field.data[event] ? field.data[event] - 1 : undefined;
      if (field.how === "numbers") return Number.isNaN(field.data[event]) ? undefined : field.data[event];
      const at = lower(field.index, event);
      return field.index[at] === event ? field.data[at] : undefined;
    }

    /** The lifelines of a kind; those of stages are the pairs. */
    lines(kind) {
      if (kind !== "stage" || this.kinds.has(kind)) return this.kinds.get(kind);
      const laned = new Set(this.lanes);
      const drawn = this.words.map((word) => laned.has(word));
      const ends = this.words.map((word) => word.endsWith("_END"));
      const [starts, points, outcome] = [[0], [], []];
      for (let i = 0; i < this.count; i += 1) {
        const other = this.partner[i];
        if (!drawn[this.code[i]] || (other >= 0 && ends[this.code[i]])) continue;
        points.push(i);
        if (other >= 0) points.push(other);
        starts.push(points.length);
        outcome.push(Math.max(this.outcome[i], other < 0 ? 0 : this.outcome[other]));
      }
      const made = {
        kind,
        starts: Uint32Array.from(starts),
        points: Int32Array.from(points),
        outcome: Uint8Array.from(outcome),
      };
      this.kinds.set(kind, made);
      return made;
    }

    /** What a line is called. */
    name(lines, line) {
      const field = lines.kind.toUpperCase();
      for (let p = lines.starts[line]; p < lines.starts[line + 1]; p += 1) {
        const told = this.value(field, lines.points[p]);
        if (told !== undefined) return String(told);
      }
      return this.words[this.code[lines.points[lines.starts[line]]]].replace(/_(START|END)$/, "");
    }
  }

  /** The first place in rising numbers that is not below `value`. */
  function lower(sorted, value, read = (x) => x) {
    let [low, high] = [0, sorted.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (read(sorted[middle]) < value) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  // ---------------------------------------------------------------- pieces of line

  /** The pieces of all lines between chosen lanes, by the time they begin, and levels of them. */
  class Pieces {
    constructor(trace, lines, shown) {
      const lane = new Int16Array(trace.words.length).fill(-1);
      const around = trace.words.map((word) => /^(PORTAL|JOB|BATCH)_(START|END)$/.test(word));
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

    /** Give the pieces merged to columns of a width. */
    level(width) {
      if (!this.levels.has(width)) {
        if (this.levels.size > 24) this.levels.delete(this.levels.keys().next().value);
        this.levels.set(width, this.parts.map((part) => merged(part, width)));
      }
      return this.levels.get(width);
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
          clearTimeout(this.later);
          this.later = setTimeout(() => {
            this.level(width);
            draw();
          }, SETTLED_MS);
          return { parts: this.levels.get(near), many };
        }
      }
      return { parts: this.level(width), many };
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
    for (let i = 0; i < part.count; i += 1) {
      const b = Math.floor(part.x1[i] / width);
      const e = Math.floor(part.x2[i] / width);
      const kind = part.kind[i];
      if (e - b > LONGEST) {
        begins[made] = b;
        ends[made] = e;
        kinds[made] = kind;
        weights[made] = 1;
        made += 1;
        continue;
      }
      if (2 * made > slots.length) grow();
      let slot = hash(b, e, kind);
      for (;;) {
        const at = slots[slot] - 1;
        if (at < 0) {
          slots[slot] = made + 1;
          begins[made] = b;
          ends[made] = e;
          kinds[made] = kind;
          weights[made] = 1;
          made += 1;
          break;
        }
        if (begins[at] === b && ends[at] === e && kinds[at] === kind) {
          weights[at] += 1;
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
        const first = Math.max(0, Math.round(xa));
        const last = Math.min(width - 1, Math.round(xb));
        const slope = dy / dx;
        let y = ya + (first - xa) * slope + 0.5;
        for (let x = first; x <= last; x += 1, y += slope) {
          if (y >= 0 && y < height) plane[(y | 0) * width + x] += weight;
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

  // ---------------------------------------------------------------- load-lines

  /** The lines of a load, by the rules of loads.py. */
  function seriesOf(trace, load) {
    if (load.how === "rate") return [{ name: load.name, rate: trace.ofWord(load.event) }];
    if (load.how === "gauge") return gauges(trace, load);
    const begun = trace.ofWord(`${load.event}_START`);
    const ended = trace.ofWord(`${load.event}_END`);
    const times = new Float64Array(begun.length + ended.length);
    const values = new Float64Array(begun.length + ended.length);
    let [a, b, made, sum, most] = [0, 0, 0, 0, 0];
    const speed = (start, end) => {
      if (load.how === "level") return 1;
      const taken = Math.max(1, trace.time[end] - trace.time[start]);
      return ((trace.value("BYTES", end) ?? 0) / taken) * 1e6;
    };
    while (a < begun.length || b < ended.length) {
      const first = b >= ended.length || (a < begun.length && begun[a] < ended[b]);
      const event = first ? begun[a++] : ended[b++];
      const other = trace.partner[event];
      if (other < 0 && !(first && load.how === "level")) continue;
      sum += first ? speed(event, other) : -speed(other, event);
      const at = first ? trace.time[event] : Math.max(trace.time[event], trace.time[other] + (load.how === "flow" ? 1 : 0));
      times[made] = made ? Math.max(at, times[made - 1]) : at;
      values[made] = sum;
      if (sum > most) most = sum;
      made += 1;
    }
    // What is left of sums and differences.
    for (let i = 0; i < made; i += 1) if (Math.abs(values[i]) < 1e-9 * most) values[i] = 0;
    return [{ name: load.name, times: times.subarray(0, made), values: values.subarray(0, made) }];
  }

  function gauges(trace, load) {
    const all = trace.ofWord(load.event);
    const having = Array.from(all).filter((event) => trace.value(load.field, event) !== undefined);
    const apart = APART.filter((field) => new Set(having.map((event) => trace.value(field, event))).size > 1);
    const found = new Map();
    for (const event of having) {
      const name = apart.map((field) => trace.value(field, event) ?? "").filter(Boolean).join(" ") || load.name;
      if (!found.has(name)) found.set(name, { name, times: [], values: [] });
      found.get(name).times.push(trace.time[event]);
      found.get(name).values.push(trace.value(load.field, event));
    }
    return [...found.values()];
  }

  // ---------------------------------------------------------------- words

  const UNITS = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]];

  /** A number with three digits and its unit. */
  function amount(value, unit) {
    if (unit === "s") return duration(value * 1e6);
    const [by, letter] = UNITS.find(([least]) => Math.abs(value) >= least) ?? [1, ""];
    const text = String(Number((value / by).toPrecision(3)));
    if (unit === "%") return `${Number(value.toPrecision(3))} %`;
    const short = { bytes: "B", "bytes/s": "B/s", "1/s": "/s" }[unit] ?? unit;
    return `${text} ${letter}${short}`.trim();
  }

  function duration(us) {
    const size = Math.abs(us);
    const digits = (value) => String(Number(value.toPrecision(4)));
    if (size < 1e3) return `${digits(us)} µs`;
    if (size < 1e6) return `${digits(us / 1e3)} ms`;
    if (size < 120e6) return `${digits(us / 1e6)} s`;
    if (size < 7200e6) return `${digits(us / 60e6)} min`;
    return `${digits(us / 3600e6)} h`;
  }

  const pad = (value, digits = 2) => String(value).padStart(digits, "0");

  /** A time of the day in UTC, with so many digits of the second. */
  function clock(us, digits = 6) {
    const date = new Date(Math.floor(us / 1e6) * 1e3);
    const text = `${pad(date.getUTCHours())}:${pad(date.getUTCMinutes())}:${pad(date.getUTCSeconds())}`;
    const part = pad(Math.floor(us - Math.floor(us / 1e6) * 1e6), 6);
    return digits ? `${text}.${part.slice(0, digits)}` : text;
  }

  const day = (us) => new Date(Math.floor(us / 1e3)).toISOString().slice(0, 10);
  const thousands = new Intl.NumberFormat("en-US");
  const grouped = (value) => thousands.format(value);
  const plural = (count, word) => `${grouped(count)} ${word}${count === 1 ? "" : "s"}`;

  const STEPS = [];
  for (let power = 1; power < 1e6; power *= 10) STEPS.push(power, 2 * power, 5 * power);
  for (const s of [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400]) {
    STEPS.push(s * 1e6);
  }
  for (let days = 2; days < 1e5; days *= 2) STEPS.push(days * 86400e6);

  function ticks(trace, t0, t1, most) {
    const step = STEPS.find((each) => (t1 - t0) / each <= most) ?? STEPS[STEPS.length - 1];
    const made = [];
    for (let at = Math.ceil((trace.start + t0) / step) * step - trace.start; at <= t1; at += step) made.push(at);
    const digits = step >= 1e6 ? 0 : Math.min(6, Math.ceil(6 - Math.log10(step) - 1e-9));
    return { made, digits, step };
  }

  function niceTop(value) {
    if (!(value > 0)) return 1;
    const power = 10 ** Math.floor(Math.log10(value));
    return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].find((each) => each * power >= value * 0.999) * power;
  }

  // ---------------------------------------------------------------- the page

  function make(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
      else if (value === true) made.setAttribute(name, "");
      else if (value !== false && value !== undefined) made.setAttribute(name, value);
    }
    made.append(...children);
    return made;
  }

  let trace = null;
  let pieces = null;
  let lines = null;
  const state = {
    kind: settings.kind || "",
    order: settings.events || null, // lanes that were asked for, from below
    hidden: new Set(),
    loads: null, // names; null: the first ones
    marks: null, // words of rows of points
    scatter: null,
    t0: 0,
    t1: 1,
    head: null,
    playing: false,
    rate: null,
    follow: Boolean(settings.follow),
    hover: null,
    pinned: null,
    wanted: "",
    zoomBox: null,
  };
  const raster = new Raster();
  const scatterRaster = new Raster();
  const cache = new Map();
  let palette = null;
  let layout = null;
  let dirty = false;
  let frames = 0;

  const ui = {};

  function build() {
    root.replaceChildren();
    if (settings.bar !== false) {
      const mark = document.createElementNS("http://www.w3.org/2000/svg", "svg");
      mark.setAttribute("viewBox", "0 0 24 24");
      mark.setAttribute("aria-hidden", "true");
      const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
      path.setAttribute("fill", "currentColor");
      path.setAttribute("fill-rule", "evenodd");
      path.setAttribute("d", "M3 3h18v18H3zM5 5v14h14V5zM3 15.5 15.5 3H21v1.2L4.2 21H3z");
      mark.append(path);
      root.append(make("header", { class: "bar" }, make("div", {}, make("span", { class: "brand" }, mark, "Swathe trace"), (ui.live = make("span", { class: "who" })))));
    } else ui.live = make("span", { class: "quiet small", role: "status" });
    ui.title = make("h1", {}, root.dataset.title || "Trace");
    ui.facts = make("p", { class: "lede small" });
    const button = (key, label, title, action, more = {}) =>
      (ui[key] = make("button", { class: "slight", type: "button", title, onclick: action, ...more }, label));
    ui.kind = make("select", { id: "kind", onchange: () => choose({ kind: ui.kind.value }) });
    ui.find = make("input", { id: "find", type: "search", placeholder: "part of an id", oninput: () => find(ui.find.value) });
    ui.found = make("output", { class: "small quiet", for: "find" });
    ui.rate = make("output", { class: "small rate", "aria-label": "Speed" });
    ui.at = make("output", { class: "small at", "aria-label": "Time" });
    const tools = make(
      "div",
      { class: "tools", role: "toolbar", "aria-label": "Time" },
      make(
        "div",
        { class: "group" },
        button("rewind", "Rewind", "Back to the beginning (R)", rewind),
        button("play", "Play", "Play or pause (space)", toggle, { class: "slight main" }),
        button("slower", "Slower", "Half as fast ([)", () => speed(0.5)),
        ui.rate,
        button("faster", "Faster", "Twice as fast (])", () => speed(2)),
        button("all", "Show all", "No longer play (Escape)", stop),
      ),
      make(
        "div",
        { class: "group" },
        button("out", "\u2212", "Zoom out (\u2212)", () => zoom(2), { "aria-label": "Zoom out" }),
        button("in", "+", "Zoom in (+)", () => zoom(0.5), { "aria-label": "Zoom in" }),
        button("fit", "Whole run", "Everything (0)", fit),
      ),
      make("div", { class: "group" }, make("label", { for: "kind" }, "A line for each"), ui.kind),
      make("div", { class: "group" }, make("label", { for: "find" }, "Find"), ui.find, ui.found),
      settings.follow ? make("div", { class: "group" }, button("follow", "Follow", "Keep to the newest (F)", () => setFollow(!state.follow), { "aria-pressed": "true" })) : "",
    );
    ui.canvas = make("canvas", { tabindex: "0", role: "img", "aria-describedby": "keys" });
    ui.over = make("canvas", { class: "over", "aria-hidden": "true" });
    ui.tip = make("div", { class: "tip", role: "status", "aria-live": "polite", hidden: true });
    ui.plot = make("div", { class: "plot-area" }, ui.canvas, ui.over, ui.tip);
    ui.legend = make("div", { class: "legend" });
    ui.side = make("aside", { class: "side", "aria-label": "What is shown" });
    ui.detail = make("section", { class: "detail", "aria-live": "polite", hidden: true });
    ui.keys = make(
      "p",
      { class: "small quiet keys", id: "keys" },
      "Wheel or + \u2212: zoom. Drag or arrows: pan. Shift and drag: zoom to a box. Click: keep a line. Space: play. , and .: event before and after. Home, End: first, last. 0: whole run.",
    );
    const stage = make("div", { class: "stage" }, make("div", { class: "above" }, ui.legend, ui.at), ui.plot, ui.keys, ui.detail);
    root.append(make(settings.bar === false ? "div" : "main", { class: "viewer", id: settings.bar === false ? undefined : "main" }, make("div", { class: "about" }, ui.title, ui.facts, settings.bar === false ? ui.live : ""), tools, make("div", { class: "lay" }, ui.side, stage)));
    listen();
  }

  // ---------------------------------------------------------------- choices

  function shownLanes() {
    const lanes = state.order ? state.order.filter((word) => trace.lanes.includes(word)) : trace.lanes;
    return lanes.filter((word) => !state.hidden.has(word));
  }

  function allLanes() {
    if (!state.order) return trace.lanes;
    return [...state.order.filter((word) => trace.lanes.includes(word)), ...trace.lanes.filter((word) => !state.order.includes(word))];
  }

  function shownLoads() {
    const names = state.loads ?? firstLoads();
    return trace.loads.filter((load) => names.includes(load.name));
  }

  const firstLoads = () => settings.loads ?? trace.header.first_loads;

  /** Rows of points that there may be: types that are no part of a stage, and what failed. */
  function marks() {
    const alone = trace.words.filter((word, code) => trace.of[code].length && !/_(START|END)$/.test(word));
    return [...(trace.failed.length ? ["failed"] : []), ...alone.sort()];
  }

  const shownMarks = () => marks().filter((word) => (state.marks ?? ["failed"]).includes(word));
  const marksOf = (word) => (word === "failed" ? trace.failed : trace.ofWord(word));

  /** What a scatter may show: durations of stages and amounts. */
  function scatters() {
    const made = [];
    for (const word of trace.words) {
      const events = trace.ofWord(word);
      if (!events.length) continue;
      const stage = word.replace(/_END$/, "");
      if (stage !== word && events.some((event) => trace.partner[event] >= 0)) made.push({ name: `${stage} duration`, word, unit: "s" });
      for (const [name, field] of trace.fields) {
        if (!["whole", "numbers", "few"].includes(field.how) || ["PID", "THREAD", "REQUEST"].includes(name)) continue;
        if (!Array.from(events.subarray(0, 50)).some((event) => trace.value(name, event) !== undefined)) continue;
        const unit = name.endsWith("BYTES") ? "bytes" : name.endsWith("_PERCENT") ? "%" : name.endsWith("_S") && !name.endsWith("_PER_S") ? "s" : "";
        made.push({ name: `${stage} ${name}`, word, field: name, unit });
      }
    }
    const rank = (each) => ["FETCH duration", "READ duration", "CUT duration"].indexOf(each.name) >>> 0;
    return made.sort((a, b) => rank(a) - rank(b) || a.name.localeCompare(b.name));
  }

  function choose(changes) {
    Object.assign(state, changes);
    rebuild();
  }

  function rebuild() {
    lines = trace.lines(state.kind);
    pieces = new Pieces(trace, lines, shownLanes());
    refreshSide();
    arrange();
    find(state.wanted);
    draw();
  }

  function refreshSide() {
    const lanes = allLanes();
    const open = new Map([...ui.side.querySelectorAll("details")].map((each) => [each.dataset.of, each.open]));
    const focused = document.activeElement?.closest?.(".side") ? document.activeElement.id : null;
    const scroll = ui.side.scrollTop;
    const group = (name, title, ...children) =>
      make("details", { "data-of": name, open: open.get(name) ?? true }, make("summary", {}, title), ...children);
    const check = (id, label, count, checked, action, more = {}) =>
      make("label", { class: "check", ...more }, make("input", { type: "checkbox", id, checked, onchange: (event) => action(event.target.checked) }), make("span", { class: "mono" }, label), make("span", { class: "count" }, count));
    const toggled = (all, name, on) => (on ? [...all, name] : all.filter((each) => each !== name));
    const events = group(
      "events",
      `Events (${shownLanes().length} of ${lanes.length})`,
      make(
        "div",
        { class: "group" },
        make("button", { class: "slight", type: "button", onclick: () => choose({ hidden: new Set(), order: null }) }, "All"),
        make("button", { class: "slight", type: "button", onclick: () => choose({ hidden: new Set(lanes) }) }, "None"),
      ),
      make("p", { class: "small quiet", id: "move" }, "Alt and arrows move one."),
      ...[...lanes].reverse().map((word) => {
        const row = check(`lane-${word}`, word, grouped(trace.ofWord(word).length), !state.hidden.has(word) && shownLanes().includes(word), (on) => {
          if (on) state.hidden.delete(word);
          else state.hidden.add(word);
          if (on && state.order && !state.order.includes(word)) state.order = [...state.order, word];
          rebuild();
        });
        row.addEventListener("keydown", (event) => {
          if (!event.altKey || !["ArrowUp", "ArrowDown"].includes(event.key)) return;
          event.preventDefault();
          const order = [...lanes];
          const at = order.indexOf(word);
          const to = at + (event.key === "ArrowUp" ? 1 : -1);
          if (to < 0 || to >= order.length) return;
          [order[at], order[to]] = [order[to], order[at]];
          state.order = order;
          rebuild();
        });
        return row;
      }),
    );
    const loadNames = state.loads ?? firstLoads();
    const loadRows = group(
      "loads",
      `Load-lines (${shownLoads().length} of ${trace.loads.length})`,
      ...trace.loads.map((load) =>
        check(`load-${load.name}`, load.name, load.unit, loadNames.includes(load.name), (on) => choose({ loads: toggled(loadNames, load.name, on) })),
      ),
    );
    const markNames = state.marks ?? ["failed"];
    const scatterList = scatters();
    const scatterSelect = make("select", { id: "scatter", onchange: (event) => choose({ scatter: event.target.value }) }, make("option", { value: "none" }, "none"), ...scatterList.map((each) => make("option", { value: each.name }, each.name)));
    state.scatter ??= scatterList[0]?.name ?? "none";
    scatterSelect.value = state.scatter;
    const points = group(
      "points",
      "Points",
      make("label", { for: "scatter", class: "small" }, "Scatter of"),
      scatterSelect,
      ...marks().map((word) => check(`mark-${word}`, word, grouped(marksOf(word).length), markNames.includes(word), (on) => choose({ marks: toggled(markNames, word, on) }))),
    );
    ui.side.replaceChildren(events, loadRows, points);
    ui.side.scrollTop = scroll;
    if (focused) document.getElementById(focused)?.focus();
    const kinds = [...trace.kinds.keys()].filter((kind) => kind !== "stage");
    ui.kind.replaceChildren(...[...kinds, "stage"].map((kind) => make("option", { value: kind }, kind)));
    ui.kind.value = state.kind;
    const counts = [0, 0, 0, 0];
    for (const outcome of lines.outcome) counts[outcome] += 1;
    ui.legend.replaceChildren(
      make("span", { class: "quiet" }, plural(pieces.lines, "lifeline")),
      ...trace.header.outcomes.flatMap((name, outcome) => (counts[outcome] ? [make("span", { class: `tone outcome-${outcome}` }, make("i", {}), `${name}: ${grouped(counts[outcome])}`)] : [])),
    );
    const hosts = trace.fields.get("HOST");
    const many = hosts?.how === "coded" ? hosts.words.length : hosts ? 1 : 0;
    const damaged = trace.header.damaged_count;
    ui.facts.textContent = trace.count
      ? `${plural(trace.count, "event")} in ${duration(trace.end)} from ${day(trace.start)} ${clock(trace.start)} UTC, ${plural(many, "host")}${trace.header.left_out ? "; older ones are left out" : ""}${damaged ? `; ${plural(damaged, "damaged line")} left out, the first: line ${trace.header.damaged[0]?.[0]}, ${trace.header.damaged[0]?.[1]}` : ""}.`
      : "No events yet.";
  }

  // ---------------------------------------------------------------- layout and drawing

  function arrange() {
    const width = Math.max(320, ui.plot.clientWidth);
    const rowsOfLoads = shownLoads();
    const rowsOfMarks = shownMarks();
    const scatter = scatters().find((each) => each.name === state.scatter);
    const lanes = shownLanes();
    const below = rowsOfLoads.length * 80 + rowsOfMarks.length * 20 + (scatter ? 112 : 0) + AXIS + 30;
    const room = window.innerHeight - ui.plot.getBoundingClientRect().top - window.scrollY - 70;
    const tall = Math.max(200, lanes.length * 17, Math.min(Math.max(room - below, 380), lanes.length * 44));
    const made = { width, panels: [], left: GUTTER, right: width - RIGHT };
    let top = AXIS;
    const panel = (kind, height, gap, more = {}) => {
      made.panels.push({ kind, top, height, ...more });
      top += height + gap;
    };
    panel("lines", tall, 24, { lanes });
    if (scatter) panel("scatter", 80, 32, { scatter });
    for (const load of rowsOfLoads) panel("load", 54, 26, { load });
    for (const word of rowsOfMarks) panel("marks", 14, 6, { word });
    made.bottom = top;
    made.height = top + 6;
    made.panels.push({ kind: "overview", top: 4, height: OVERVIEW });
    const ratio = Math.min(window.devicePixelRatio || 1, Math.sqrt(MOST_PIXELS / (width * tall)));
    made.ratio = Math.max(1, ratio);
    for (const canvas of [ui.canvas, ui.over]) {
      canvas.width = Math.round(width * made.ratio);
      canvas.height = Math.round(made.height * made.ratio);
      canvas.style.height = `${made.height}px`;
    }
    ui.plot.style.height = `${made.height}px`;
    layout = made;
  }

  function colors() {
    if (palette) return palette;
    const style = getComputedStyle(document.documentElement);
    const read = (name) => style.getPropertyValue(name).trim();
    const rgb = (text) => [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16));
    palette = {
      text: read("--text"),
      quiet: read("--quiet"),
      line: read("--line"),
      sheet: read("--sheet"),
      accent: read("--accent"),
      sunken: read("--sunken"),
      outcome: [...[0, 1, 2, 3].map((each) => read(`--outcome-${each}`)), read("--step-2")],
      series: SERIES.map(read),
      sans: `12px ${read("--sans")}`,
      mono: `11px ${read("--mono")}`,
    };
    palette.outcomeRgb = palette.outcome.map(rgb);
    palette.strong = rgb(palette.text);
    return palette;
  }

  const x = (t) => layout.left + ((t - state.t0) / (state.t1 - state.t0)) * (layout.right - layout.left);
  const t = (px) => state.t0 + ((px - layout.left) / (layout.right - layout.left)) * (state.t1 - state.t0);
  const laneY = (panel, lane) => {
    const step = panel.height / Math.max(1, panel.lanes.length);
    return panel.top + panel.height - (lane + 0.5) * step;
  };

  function draw() {
    if (dirty || !trace) return;
    dirty = true;
    requestAnimationFrame(paint);
  }

  function paint() {
    dirty = false;
    const began = performance.now();
    if (state.playing) advance(began);
    const g = ui.canvas.getContext("2d");
    g.setTransform(layout.ratio, 0, 0, layout.ratio, 0, 0);
    g.clearRect(0, 0, layout.width, layout.height);
    axis(g);
    for (const panel of layout.panels) painters[panel.kind](g, panel);
    if (state.head !== null) cover(g);
    paintOver();
    report(performance.now() - began);
    if (state.playing) draw();
  }

  function axis(g) {
    const c = colors();
    const { made, digits } = ticks(trace, state.t0, state.t1, (layout.right - layout.left) / 118);
    const { bottom } = layout;
    g.font = c.sans;
    g.textAlign = "center";
    g.textBaseline = "alphabetic";
    for (const at of made) {
      const px = Math.round(x(at)) + 0.5;
      g.strokeStyle = c.line;
      g.lineWidth = 1;
      g.beginPath();
      g.moveTo(px, AXIS - 6);
      g.lineTo(px, bottom);
      g.stroke();
      g.fillStyle = c.quiet;
      const text = clock(trace.start + at, digits);
      const half = g.measureText(text).width / 2;
      g.fillText(text, Math.min(Math.max(px, layout.left - 10 + half), layout.width - half - 2), AXIS - 12);
    }
    g.textAlign = "left";
    g.fillStyle = c.quiet;
    g.fillText(`${day(trace.start + state.t0)} UTC`, 4, AXIS - 12);
  }

  const painters = {
    lines(g, panel) {
      const c = colors();
      const step = panel.height / Math.max(1, panel.lanes.length);
      g.font = c.mono;
      g.textAlign = "right";
      g.textBaseline = "middle";
      panel.lanes.forEach((word, lane) => {
        const y = Math.round(laneY(panel, lane)) + 0.5;
        g.strokeStyle = c.line;
        g.beginPath();
        g.moveTo(layout.left, y);
        g.lineTo(layout.right, y);
        g.stroke();
        if (step < 11 && lane % Math.ceil(11 / step)) return;
        g.fillStyle = c.text;
        g.fillText(word, layout.left - 8, y, GUTTER - 12);
      });
      if (!panel.lanes.length) {
        g.textAlign = "center";
        g.fillStyle = c.quiet;
        g.fillText("No events chosen", layout.width / 2, panel.top + panel.height / 2);
      }
      const perPixel = (state.t1 - state.t0) / ((layout.right - layout.left) * layout.ratio);
      const { parts, many } = pieces.within(state.t0, state.t1, perPixel);
      panel.many = many;
      panel.drawn = 0;
      panel.dense = many > FEW;
      (panel.dense ? dense : single)(g, panel, parts);
    },

    scatter(g, panel) {
      const { scatter } = panel;
      const c = colors();
      const points = scatterPoints(scatter);
      const [low, high] = points.range;
      const y = (log) => panel.top + panel.height - 3 - ((log - low) / (high - low)) * (panel.height - 6);
      frame(g, panel, scatter.name, `log, ${scatter.unit === "s" ? "time" : scatter.unit || "count"}`);
      g.font = c.sans;
      g.textAlign = "right";
      g.fillStyle = c.quiet;
      for (let power = Math.ceil(low); power <= high; power += Math.ceil((high - low) / 4)) {
        g.textBaseline = "middle";
        g.fillText(amount(10 ** power, scatter.unit), layout.left - 8, y(power));
        g.strokeStyle = c.line;
        g.beginPath();
        g.moveTo(layout.left, Math.round(y(power)) + 0.5);
        g.lineTo(layout.right, Math.round(y(power)) + 0.5);
        g.stroke();
      }
      const from = lower(points.times, state.t0);
      const to = lower(points.times, state.t1);
      if (to - from <= FEW) {
        g.globalAlpha = 0.7;
        for (let i = from; i < to; i += 1) {
          g.fillStyle = c.outcome[points.outcome[i]];
          g.beginPath();
          g.arc(x(points.times[i]), y(points.logs[i]), 2.2, 0, 7);
          g.fill();
        }
        g.globalAlpha = 1;
        return;
      }
      const { ratio } = layout;
      const wide = Math.round((layout.right - layout.left) * ratio);
      const tall = Math.round(panel.height * ratio);
      scatterRaster.begin(wide, tall);
      for (let i = from; i < to; i += 1) {
        const px = (x(points.times[i]) - layout.left) * ratio;
        const py = (y(points.logs[i]) - panel.top) * ratio;
        const place = Math.min(tall - 1, Math.max(0, py | 0)) * wide + Math.min(wide - 1, Math.max(0, px | 0));
        scatterRaster.planes[points.outcome[i]][place] += 1;
        scatterRaster.used[points.outcome[i]] = true;
      }
      place(g, scatterRaster, panel);
    },

    load(g, panel) {
      const { load } = panel;
      const c = colors();
      const wide = layout.right - layout.left;
      const drawn = [];
      let most = 0;
      for (const line of cached(`load ${load.name}`, () => seriesOf(trace, load))) {
        const columns = line.rate ? rateColumns(line.rate, wide) : stepColumns(line, wide);
        for (const value of columns.high) if (value > most) most = value;
        drawn.push({ name: line.name, columns });
      }
      const top = load.unit === "%" && most <= 100 ? 100 : niceTop(most);
      const y = (value) => panel.top + panel.height - (Math.max(0, value) / top) * (panel.height - 4);
      frame(g, panel, load.name, load.unit);
      g.font = c.sans;
      g.textAlign = "right";
      g.fillStyle = c.quiet;
      g.textBaseline = "top";
      g.fillText(amount(top, load.unit), layout.left - 8, panel.top - 2);
      g.textBaseline = "alphabetic";
      g.fillText("0", layout.left - 8, panel.top + panel.height + 1);
      g.save();
      g.beginPath();
      g.rect(layout.left, panel.top - 2, wide, panel.height + 4);
      g.clip();
      drawn.forEach(({ columns }, number) => {
        g.strokeStyle = g.fillStyle = c.series[number % c.series.length];
        const many = columns.at.length;
        const place = (i) => layout.left + (i < many ? columns.at[i] : wide);
        for (let i = 0; i < many; i += 1) {
          if (Number.isNaN(columns.last[i])) continue;
          const [px, next] = [place(i), place(i + 1)];
          g.globalAlpha = 0.12;
          if (drawn.length === 1) {
            const foot = panel.top + panel.height;
            g.fillRect(px, y(columns.mean[i]), 1, foot - y(columns.mean[i]));
            if (next - px > 1) g.fillRect(px + 1, y(columns.last[i]), next - px - 1, foot - y(columns.last[i]));
          }
          g.globalAlpha = 0.28;
          if (columns.high[i] > columns.low[i]) g.fillRect(px, y(columns.high[i]), Math.max(1, Math.min(next - px, 1)), y(columns.low[i]) - y(columns.high[i]));
        }
        g.globalAlpha = 1;
        g.lineWidth = 1.4;
        g.beginPath();
        let pen = false;
        for (let i = 0; i < many; i += 1) {
          if (Number.isNaN(columns.last[i])) {
            pen = false;
            continue;
          }
          g[pen ? "lineTo" : "moveTo"](place(i), y(columns.mean[i]));
          if (place(i + 1) - place(i) > 1.01) {
            g.lineTo(place(i) + 1, y(columns.last[i]));
            g.lineTo(place(i + 1), y(columns.last[i]));
          }
          pen = true;
        }
        g.stroke();
      });
      g.restore();
      if (drawn.length > 1) {
        g.textAlign = "left";
        g.textBaseline = "alphabetic";
        let px = layout.left + g.measureText(`${load.name}, ${load.unit}`).width + 36;
        drawn.forEach(({ name }, number) => {
          g.fillStyle = c.series[number % c.series.length];
          g.fillRect(px, panel.top - 13, 12, 3);
          g.fillStyle = c.quiet;
          g.fillText(name, px + 17, panel.top - 8);
          px += g.measureText(name).width + 34;
        });
      }
      panel.read = (at) => drawn.map(({ name, columns }) => {
        const column = lowerColumn(columns, at);
        return { name, value: columns.mean[column] };
      });
    },

    marks(g, panel) {
      const c = colors();
      const events = marksOf(panel.word);
      g.font = c.mono;
      g.textAlign = "right";
      g.textBaseline = "middle";
      g.fillStyle = c.text;
      g.fillText(panel.word, layout.left - 8, panel.top + panel.height / 2, GUTTER - 12);
      g.fillStyle = c.sunken;
      g.fillRect(layout.left, panel.top, layout.right - layout.left, panel.height);
      g.fillStyle = panel.word === "failed" ? c.outcome[FAILED] : c.series[0];
      const read = (event) => trace.time[event];
      let at = lower(events, state.t0, read);
      for (let px = Math.floor(layout.left); px < layout.right && at < events.length; px += 1) {
        const next = lower(events, t(px + 1), read);
        if (next > at) {
          g.globalAlpha = Math.min(1, 0.55 + 0.15 * Math.log2(next - at));
          g.fillRect(px, panel.top + 1, 1.5, panel.height - 2);
        }
        at = Math.max(at, next);
      }
      g.globalAlpha = 1;
    },

    overview(g, panel) {
      const c = colors();
      const wide = Math.max(1, Math.round(layout.right - layout.left));
      const { counts, failed, most } = cached(`overview ${wide}`, () => {
        const made = { counts: new Uint32Array(wide), failed: new Uint8Array(wide), most: 1 };
        const scale = trace.end > 0 ? (wide - 1) / trace.end : 0;
        for (let i = 0; i < trace.count; i += 1) {
          const column = (trace.time[i] * scale) | 0;
          made.counts[column] += 1;
          if (trace.outcome[i] === FAILED) made.failed[column] = 1;
        }
        for (const count of made.counts) if (count > made.most) made.most = count;
        return made;
      });
      g.fillStyle = c.sunken;
      g.fillRect(layout.left, panel.top, wide, panel.height);
      g.fillStyle = c.quiet;
      for (let i = 0; i < wide; i += 1) {
        if (!counts[i]) continue;
        const tall = (Math.log1p(counts[i]) / Math.log1p(most)) * (panel.height - 6);
        g.fillRect(layout.left + i, panel.top + panel.height - tall, 1, tall);
      }
      g.fillStyle = c.outcome[FAILED];
      for (let i = 0; i < wide; i += 1) if (failed[i]) g.fillRect(layout.left + i - 0.5, panel.top, 2, 4);
      const [from, to] = [overX(state.t0), overX(state.t1)].map((px) => Math.min(layout.right, Math.max(layout.left, px)));
      g.fillStyle = c.sheet;
      g.globalAlpha = 0.6;
      g.fillRect(layout.left, panel.top, from - layout.left, panel.height);
      g.fillRect(to, panel.top, layout.right - to, panel.height);
      g.globalAlpha = 1;
      g.strokeStyle = c.accent;
      g.lineWidth = 2;
      g.strokeRect(from, panel.top, Math.max(3, to - from), panel.height);
      g.lineWidth = 1;
      g.font = c.sans;
      g.textAlign = "right";
      g.textBaseline = "middle";
      g.fillStyle = c.quiet;
      g.fillText("whole run", layout.left - 8, panel.top + panel.height / 2);
      if (state.head !== null) {
        g.fillStyle = c.accent;
        g.fillRect(overX(state.head) - 1, panel.top - 4, 2, panel.height + 8);
      }
    },
  };

  const overX = (at) => layout.left + (trace.end > 0 ? at / trace.end : 0) * (layout.right - layout.left);
  const overT = (px) => ((px - layout.left) / (layout.right - layout.left)) * trace.end;

  function cached(key, making) {
    if (!cache.has(key)) cache.set(key, making());
    return cache.get(key);
  }

  function frame(g, panel, title, unit) {
    const c = colors();
    g.font = c.sans;
    g.textAlign = "left";
    g.textBaseline = "alphabetic";
    g.fillStyle = c.text;
    g.fillText(title, layout.left, panel.top - 8);
    const after = layout.left + g.measureText(title).width;
    g.fillStyle = c.quiet;
    if (unit) g.fillText(`, ${unit}`, after, panel.top - 8);
    g.strokeStyle = c.line;
    g.beginPath();
    g.moveTo(layout.left, panel.top + panel.height + 0.5);
    g.lineTo(layout.right, panel.top + panel.height + 0.5);
    g.stroke();
  }

  /** Draw many pieces as how many go through each pixel. */
  function dense(g, panel, parts) {
    const { ratio } = layout;
    const wide = Math.round((layout.right - layout.left) * ratio);
    const tall = Math.round(panel.height * ratio);
    const scale = wide / (state.t1 - state.t0);
    const heights = panel.lanes.map((_, lane) => (laneY(panel, lane) - panel.top) * ratio);
    raster.begin(wide, tall);
    let drawn = 0;
    const { t0, t1 } = state;
    let own = 0;
    for (const { x2, kind, ...part } of parts) {
      ranges(part, t0, t1, (from, to) => {
        for (let i = from; i < to; i += 1) if (x2[i] >= t0 && (kind[i] & 255) !== AROUND) own += 1;
      });
    }
    for (const part of parts) {
      const { x1, x2, kind, weight } = part;
      ranges(part, t0, t1, (from, to) => {
        for (let i = from; i < to; i += 1) {
          const k = kind[i];
          if (x2[i] < t0 || (own <= FEW && (k & 255) !== AROUND)) continue;
          raster.add(k & 255, (x1[i] - t0) * scale, heights[k >> 16], (x2[i] - t0) * scale, heights[(k >> 8) & 255], weight ? weight[i] : 1);
          drawn += 1;
        }
      });
    }
    raster.finish();
    place(g, raster, panel);
    // Many wait, few are at work: these can be told apart.
    if (own <= FEW) single(g, panel, parts, false);
    panel.drawn = drawn + (own <= FEW ? own : 0);
  }

  function place(g, made, panel) {
    const c = colors();
    const image = made.picture(c.outcomeRgb, c.strong);
    // Drawn by way of another canvas, so that what is below stays.
    ui.scratch ??= document.createElement("canvas");
    if (ui.scratch.width !== image.width || ui.scratch.height !== image.height) {
      ui.scratch.width = image.width;
      ui.scratch.height = image.height;
    }
    ui.scratch.getContext("2d", { willReadFrequently: true }).putImageData(image, 0, 0);
    g.drawImage(ui.scratch, layout.left, panel.top, layout.right - layout.left, panel.height);
  }

  /** Draw few pieces as lines, and their events as points. */
  function single(g, panel, parts, around = true) {
    const c = colors();
    const found = PLANES.map(() => []);
    for (const part of parts) {
      ranges(part, state.t0, state.t1, (from, to) => {
        for (let i = from; i < to; i += 1) {
          const kind = part.kind[i];
          if (!around && (kind & 255) === AROUND) continue;
          if (part.x2[i] >= state.t0) found[kind & 255].push({ x1: part.x1[i], x2: part.x2[i], from: kind >> 16, to: (kind >> 8) & 255 });
        }
      });
    }
    const total = found.reduce((sum, each) => sum + each.length, 0);
    panel.drawn = total;
    g.save();
    g.beginPath();
    g.rect(layout.left, panel.top, layout.right - layout.left, panel.height);
    g.clip();
    for (const outcome of PLANES) {
      const some = found[outcome];
      if (!some.length) continue;
      g.strokeStyle = g.fillStyle = c.outcome[outcome];
      const plain = outcome === DONE || outcome === AROUND;
      g.lineWidth = plain ? 1 : 1.6;
      g.setLineDash(outcome === UNFINISHED ? [5, 3] : []);
      g.globalAlpha = plain ? Math.max(0.3, Math.min(0.85, 400 / total)) : 0.95;
      g.beginPath();
      for (const piece of some) {
        g.moveTo(x(piece.x1), laneY(panel, piece.from));
        g.lineTo(x(piece.x2), laneY(panel, piece.to));
      }
      g.stroke();
      if (total > FEW / 4) continue;
      g.beginPath();
      for (const piece of some) {
        for (const [at, lane] of [[piece.x1, piece.from], [piece.x2, piece.to]]) {
          const [px, py] = [x(at), laneY(panel, lane)];
          if (px < layout.left - 3 || px > layout.right + 3) continue;
          g.moveTo(px + 2, py);
          g.arc(px, py, 2, 0, 7);
        }
      }
      g.globalAlpha = 1;
      g.fill();
    }
    g.restore();
    g.setLineDash([]);
    g.globalAlpha = 1;
    g.lineWidth = 1;
  }

  function scatterPoints(scatter) {
    return cached(`scatter ${scatter.name}`, () => {
      const times = [];
      const logs = [];
      const outcome = [];
      let [low, high] = [Infinity, -Infinity];
      for (const event of trace.ofWord(scatter.word)) {
        const other = trace.partner[event];
        let value;
        if (scatter.field) value = trace.value(scatter.field, event);
        else if (other >= 0) value = Math.max(1, trace.time[event] - trace.time[other]) / 1e6;
        if (!(value > 0)) continue;
        const log = Math.log10(value);
        if (log < low) low = log;
        if (log > high) high = log;
        times.push(trace.time[event]);
        logs.push(log);
        outcome.push(trace.outcome[event]);
      }
      if (!times.length) [low, high] = [0, 1];
      return { times, logs, outcome, range: [Math.floor(low), Math.max(Math.floor(low) + 1, Math.ceil(high))] };
    });
  }

  /** A number that holds until the next, by columns of pixels. */
  function stepColumns(line, wide) {
    const { times, values } = line;
    let i = lower(times, state.t0);
    let value = i ? values[i - 1] : NaN;
    const made = { at: [0], mean: [value], low: [value], high: [value], last: [value] };
    const end = lower(times, state.t1);
    const scale = wide / (state.t1 - state.t0);
    while (i < end) {
      const column = Math.floor((times[i] - state.t0) * scale);
      if (Number.isNaN(value)) value = values[i];
      // The mean over the time of the column, not over its steps.
      let [low, high, sum, from] = [value, value, 0, column];
      for (; i < end; i += 1) {
        const to = (times[i] - state.t0) * scale;
        if (to >= column + 1) break;
        sum += value * (to - from);
        from = to;
        value = values[i];
        if (value < low) low = value;
        if (value > high) high = value;
      }
      made.at.push(column);
      made.mean.push(sum + value * (column + 1 - from));
      made.low.push(low);
      made.high.push(high);
      made.last.push(value);
    }
    return made;
  }

  /** Events in a second, counted in columns that stay where they are when the view moves. */
  function rateColumns(events, wide) {
    const perPixel = (state.t1 - state.t0) / wide;
    const bin = 2 ** Math.ceil(Math.log2(perPixel * 4));
    const at = [];
    const values = [];
    const read = (event) => trace.time[event];
    let from = lower(events, Math.floor(state.t0 / bin) * bin, read);
    for (let b = Math.floor(state.t0 / bin); b * bin < state.t1; b += 1) {
      const to = lower(events, (b + 1) * bin, read);
      at.push((b * bin - state.t0) / perPixel);
      values.push(b * bin > trace.end ? NaN : ((to - from) / bin) * 1e6);
      from = to;
    }
    return { at, mean: values, low: values, high: values, last: values };
  }

  const lowerColumn = (columns, px) => Math.max(0, lower(columns.at, px + 0.001) - 1);

  /** Hide what is still to come. */
  function cover(g) {
    const c = colors();
    const px = Math.min(layout.right, Math.max(layout.left, x(state.head)));
    const { bottom } = layout;
    g.globalAlpha = 0.9;
    g.fillStyle = c.sheet;
    g.fillRect(px, AXIS - 4, layout.right - px + 1, bottom - AXIS + 4);
    g.globalAlpha = 1;
    g.fillStyle = c.accent;
    g.fillRect(px - 1, AXIS - 6, 2, bottom - AXIS + 6);
  }

  /** Draw what follows the pointer: the line it is at, the time, the box to zoom to. */
  function paintOver() {
    const c = colors();
    const g = ui.over.getContext("2d");
    g.setTransform(layout.ratio, 0, 0, layout.ratio, 0, 0);
    g.clearRect(0, 0, layout.width, layout.height);
    const panel = layout.panels[0];
    const matched = state.matched ?? [];
    for (const line of matched.slice(0, 500)) trail(g, panel, line, c.accent, 1.8);
    const at = state.hover ?? state.pinned;
    if (state.pinned) for (const line of state.pinned.lines.slice(0, 500)) trail(g, panel, line, c.text, 2.2);
    if (state.hover) for (const line of state.hover.lines.slice(0, 500)) trail(g, panel, line, c.text, state.hover.lines.length > 20 ? 1 : 2);
    if (at) {
      const lane = panel.lanes.indexOf(trace.words[trace.code[at.event]]);
      const px = x(trace.time[at.event]);
      const py = lane < 0 ? at.y : laneY(panel, lane);
      g.beginPath();
      g.arc(px, py, 5, 0, 7);
      g.fillStyle = c.sheet;
      g.fill();
      g.lineWidth = 2.5;
      g.strokeStyle = c.text;
      g.stroke();
    }
    if (state.pointer !== undefined && state.pointer >= layout.left && state.pointer <= layout.right) {
      const { bottom } = layout;
      g.fillStyle = c.quiet;
      g.globalAlpha = 0.6;
      g.fillRect(state.pointer, AXIS - 4, 1, bottom - AXIS + 4);
      g.globalAlpha = 1;
      g.font = c.sans;
      g.textBaseline = "alphabetic";
      for (const each of layout.panels) {
        if (!each.read) continue;
        const told = each.read(state.pointer - layout.left).filter(({ value }) => !Number.isNaN(value));
        if (!told.length) continue;
        const text = told.map(({ name, value }) => (told.length > 1 ? `${name}: ` : "") + amount(value, each.load.unit)).join("   ");
        const half = g.measureText(text).width;
        const left = Math.min(state.pointer + 6, layout.right - half);
        g.fillStyle = c.sheet;
        g.globalAlpha = 0.85;
        g.fillRect(left - 3, each.top, half + 6, 16);
        g.globalAlpha = 1;
        g.textAlign = "left";
        g.fillStyle = c.text;
        g.fillText(text, left, each.top + 12);
      }
    }
    if (state.zoomBox) {
      const [from, to] = state.zoomBox;
      g.fillStyle = c.accent;
      g.globalAlpha = 0.18;
      g.fillRect(Math.min(from, to), AXIS, Math.abs(to - from), layout.bottom - AXIS);
      g.globalAlpha = 1;
    }
  }

  function trail(g, panel, line, color, thick) {
    g.save();
    g.beginPath();
    g.rect(layout.left, panel.top, layout.right - layout.left, panel.height);
    g.clip();
    g.beginPath();
    let pen = false;
    for (let p = lines.starts[line]; p < lines.starts[line + 1]; p += 1) {
      const event = lines.points[p];
      const lane = panel.lanes.indexOf(trace.words[trace.code[event]]);
      if (lane < 0) continue;
      g[pen ? "lineTo" : "moveTo"](x(trace.time[event]), laneY(panel, lane));
      pen = true;
    }
    g.strokeStyle = colors().sheet;
    g.lineWidth = thick + 2;
    g.stroke();
    g.strokeStyle = color;
    g.lineWidth = thick;
    g.stroke();
    g.restore();
  }

  /** Say in the page itself what is shown, for whoever reads it by a program. */
  function report(took) {
    frames += 1;
    const panel = layout.panels[0];
    Object.assign(root.dataset, {
      state: "ready",
      events: trace.count,
      kind: state.kind,
      lines: pieces.lines,
      pieces: pieces.count,
      insight: panel.many,
      drawn: panel.drawn,
      dense: panel.dense,
      from: state.t0,
      to: state.t1,
      head: state.head ?? "",
      playing: state.playing,
      frames,
      frame: took.toFixed(1),
    });
    if (!root.dataset.first) root.dataset.first = performance.now().toFixed(0);
    ui.play.textContent = state.playing ? "Pause" : "Play";
    ui.rate.textContent = `${duration(rate())} a second`;
    const shown = state.head ?? (state.pointer !== undefined ? t(state.pointer) : null);
    ui.at.textContent = shown === null ? `${duration(state.t1 - state.t0)} in sight` : `${clock(trace.start + shown)} UTC`;
    ui.all.disabled = state.head === null;
    ui.canvas.setAttribute("aria-label", `${plural(pieces.lines, "lifeline")} over ${panel.lanes.length} types of events, ${clock(trace.start + state.t0)} to ${clock(trace.start + state.t1)} UTC`);
  }

  // ---------------------------------------------------------------- moving in time

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

  // ---------------------------------------------------------------- looking at events

  /** The lines that go through an event. */
  function through(event) {
    const found = [];
    const { points, starts } = lines;
    for (let p = points.indexOf(event); p >= 0; p = points.indexOf(event, p + 1)) {
      found.push(lower(starts, p + 1) - 1);
      if (found.length >= 2000) break;
    }
    return found;
  }

  /** The event at a place on the canvas, or the line. */
  function at(px, py) {
    const panel = layout.panels.find((each) => py >= each.top - 4 && py <= each.top + each.height + 4);
    if (!panel || px < layout.left - 6 || px > layout.right + 6) return null;
    const near = (events, reach) => {
      const read = (event) => trace.time[event];
      const here = lower(events, t(px), read);
      let best = null;
      for (const i of [here - 1, here]) {
        if (i < 0 || i >= events.length) continue;
        const apart = Math.abs(x(trace.time[events[i]]) - px);
        if (apart <= reach && (!best || apart < best.apart)) best = { event: events[i], apart };
      }
      return best;
    };
    if (panel.kind === "marks") {
      const found = near(marksOf(panel.word), 6);
      return found && { event: found.event, lines: through(found.event), y: panel.top + 7 };
    }
    if (panel.kind !== "lines") return null;
    const step = panel.height / Math.max(1, panel.lanes.length);
    const lane = Math.round((panel.top + panel.height - py) / step - 0.5);
    if (lane >= 0 && lane < panel.lanes.length && Math.abs(laneY(panel, lane) - py) <= Math.min(9, step / 2)) {
      const found = near(trace.ofWord(panel.lanes[lane]), 8);
      if (found && (state.head === null || trace.time[found.event] <= state.head)) return { event: found.event, lines: through(found.event), y: py };
    }
    if (panel.many > SOME) return null;
    let best = null;
    for (const part of pieces.parts) {
      ranges(part, t(px - 6), t(px + 6), (from, to) => {
        for (let i = from; i < to; i += 1) {
          const [ya, yb] = [laneY(panel, part.kind[i] >> 16), laneY(panel, (part.kind[i] >> 8) & 255)];
          if (py < Math.min(ya, yb) - 3 || py > Math.max(ya, yb) + 3 || ya === yb) continue;
          // How far it is from a line, not from a place on it.
          const [wide, tall] = [x(part.x2[i]) - x(part.x1[i]), yb - ya];
          const apart = Math.abs((px - x(part.x1[i])) * tall - (py - ya) * wide) / Math.hypot(wide, tall);
          if (apart <= 4 && (!best || apart < best.apart)) best = { apart, line: part.line[i], x1: part.x1[i] };
        }
      });
    }
    if (!best) return null;
    for (let p = lines.starts[best.line]; p < lines.starts[best.line + 1]; p += 1) {
      if (trace.time[lines.points[p]] === best.x1 && panel.lanes.includes(trace.words[trace.code[lines.points[p]]])) {
        return { event: lines.points[p], lines: [best.line], y: py };
      }
    }
    return null;
  }

  function hover(found) {
    if (found?.event === state.hover?.event && found?.lines[0] === state.hover?.lines[0]) return;
    state.hover = found;
    root.dataset.hover = found ? trace.words[trace.code[found.event]] : "";
    tell(found ?? state.pinned);
    draw();
  }

  /** Show an event with all that it says. */
  function tell(found) {
    ui.tip.hidden = !found;
    if (!found) return;
    const { event } = found;
    const rows = [["UTC", `${day(trace.start + trace.time[event])} ${clock(trace.start + trace.time[event])}`]];
    const other = trace.partner[event];
    if (other >= 0) rows.push(["stage took", duration(Math.abs(trace.time[event] - trace.time[other]))]);
    else if (trace.words[trace.code[event]].endsWith("_START")) rows.push(["stage", "has no end"]);
    if (found.lines.length === 1) {
      const first = lines.points[lines.starts[found.lines[0]]];
      rows.push(["since start", duration(trace.time[event] - trace.time[first])]);
    } else if (found.lines.length > 1) rows.push(["shared by", `${grouped(found.lines.length)}${found.lines.length >= 2000 ? " or more" : ""} lines`]);
    for (const name of trace.fields.keys()) {
      const value = trace.value(name, event);
      if (value !== undefined) rows.push([name, typeof value === "number" ? grouped(value).replace(/,(?=\d{3}\.)/, ",") : value]);
    }
    const list = make("dl", {}, ...rows.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, String(value))]));
    ui.tip.replaceChildren(make("strong", { class: "mono" }, trace.words[trace.code[event]]), list);
    const px = x(trace.time[event]);
    const lane = layout.panels[0].lanes.indexOf(trace.words[trace.code[event]]);
    const py = lane < 0 ? found.y : laneY(layout.panels[0], lane);
    const box = ui.tip.getBoundingClientRect();
    const left = px + 16 + box.width > layout.width ? px - 16 - box.width : px + 16;
    ui.tip.style.left = `${Math.max(4, left)}px`;
    ui.tip.style.top = `${Math.max(4, Math.min(py - 20, layout.height - box.height - 4))}px`;
  }

  function pin(found) {
    state.pinned = found;
    root.dataset.pinned = found ? trace.words[trace.code[found.event]] : "";
    tell(found);
    ui.detail.hidden = !found || found.lines.length !== 1;
    if (!ui.detail.hidden) {
      const [line] = found.lines;
      let before = null;
      const rows = [];
      for (let p = lines.starts[line]; p < lines.starts[line + 1]; p += 1) {
        const event = lines.points[p];
        const here = trace.time[event];
        const fields = [...trace.fields.keys()].filter((name) => !["HOST", "PROG", "LVL", "PID", "THREAD", "JOB", "TARGET", "OBJECT"].includes(name));
        const told = fields.map((name) => [name, trace.value(name, event)]).filter(([, value]) => value !== undefined);
        rows.push(
          make("tr", {}, make("th", { scope: "row", class: "mono" }, trace.words[trace.code[event]]), make("td", { class: "num" }, clock(trace.start + here)), make("td", { class: "num" }, before === null ? "" : `+${duration(here - before)}`), make("td", { class: "mono wrap" }, told.map(([name, value]) => `${name}=${value}`).join(" "))),
        );
        before = here;
      }
      ui.detail.replaceChildren(
        make("h2", {}, `${lines.kind} ${trace.name(lines, line)}: ${trace.header.outcomes[lines.outcome[line]]}`),
        make("div", { class: "table", tabindex: "0", role: "region", "aria-label": "Events of the line" }, make("table", {}, make("thead", {}, make("tr", {}, ...["Event", "UTC", "After", "Says"].map((name) => make("th", { scope: "col", class: ["UTC", "After"].includes(name) ? "num" : "" }, name)))), make("tbody", {}, ...rows))),
      );
    }
    draw();
  }

  /** Mark the lines whose id has a text in it. */
  function find(text) {
    state.wanted = text;
    state.matched = [];
    if (text) {
      const many = lines.outcome.length;
      for (let line = 0; line < many; line += 1) if (trace.name(lines, line).includes(text)) state.matched.push(line);
    }
    ui.found.textContent = text ? plural(state.matched.length, "line") : "";
    root.dataset.found = state.matched.length;
    draw();
  }

  /** Go to the event before or after, of the kept line if there is one. */
  function stepTo(by) {
    const kept = state.pinned;
    let next = -1;
    let of = null;
    if (kept?.lines.length === 1) {
      [of] = kept.lines;
      const mine = Array.from(lines.points.subarray(lines.starts[of], lines.starts[of + 1]));
      next = mine[mine.indexOf(kept.event) + by] ?? kept.event;
    } else {
      const shown = new Set(shownLanes());
      let from = kept ? kept.event + by : lower(trace.time, Math.max(0, state.t0));
      while (from >= 0 && from < trace.count && !shown.has(trace.words[trace.code[from]])) from += by;
      if (from < 0 || from >= trace.count) return;
      next = from;
    }
    const here = trace.time[next];
    if (here < state.t0 || here > state.t1) show(here - (state.t1 - state.t0) / 2, here + (state.t1 - state.t0) / 2);
    pin({ event: next, lines: of === null ? through(next) : [of], y: AXIS + 20 });
  }

  // ---------------------------------------------------------------- pointers and keys

  function listen() {
    const place = (event) => {
      const box = ui.canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    const pointers = new Map();
    let drag = null;
    const overview = (py) => py < OVERVIEW + 8;
    ui.canvas.addEventListener("wheel", (event) => {
      if (!trace) return;
      event.preventDefault();
      const [px] = place(event);
      const lineHigh = event.deltaMode === 1 ? 30 : 1;
      if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan(((event.deltaX || event.deltaY) * lineHigh) / 1200);
      else zoom(Math.exp(Math.max(-600, Math.min(600, event.deltaY * lineHigh)) * 0.0035), Math.max(layout.left, px));
    }, { passive: false });
    ui.canvas.addEventListener("pointerdown", (event) => {
      if (!trace || event.button) return;
      const [px, py] = place(event);
      ui.canvas.setPointerCapture(event.pointerId);
      pointers.set(event.pointerId, px);
      drag = { px, py, t0: state.t0, t1: state.t1, moved: false, over: overview(py), box: event.shiftKey };
      if (drag.over) {
        const width = state.t1 - state.t0;
        const there = overT(px);
        drag.grab = there >= state.t0 && there <= state.t1 ? there - state.t0 : width / 2;
        setFollow(false);
        show(there - drag.grab, there - drag.grab + width);
      }
    });
    ui.canvas.addEventListener("pointermove", (event) => {
      if (!trace) return;
      const [px, py] = place(event);
      state.pointer = px;
      if (!drag) {
        hover(at(px, py));
        draw();
        return;
      }
      const before = [...pointers.values()];
      pointers.set(event.pointerId, px);
      if (pointers.size === 2) {
        const now = [...pointers.values()];
        const [was, is] = [Math.abs(before[0] - before[1]), Math.abs(now[0] - now[1])];
        if (was > 4 && is > 4) zoom(was / is, (now[0] + now[1]) / 2);
        drag.moved = true;
        return;
      }
      if (Math.abs(px - drag.px) > 3) drag.moved = true;
      const width = drag.t1 - drag.t0;
      if (drag.over) {
        const from = overT(px) - drag.grab;
        show(from, from + width);
      } else if (drag.box) {
        state.zoomBox = [drag.px, px];
        draw();
      } else if (drag.moved) {
        const by = ((drag.px - px) / (layout.right - layout.left)) * width;
        if (by) setFollow(false);
        show(drag.t0 + by, drag.t1 + by);
      }
    });
    const up = (event) => {
      pointers.delete(event.pointerId);
      if (!drag) return;
      const [px, py] = place(event);
      if (drag.box && drag.moved) show(t(Math.min(drag.px, px)), t(Math.max(drag.px, px)));
      else if (!drag.moved && !drag.over && event.type === "pointerup") pin(at(px, py));
      state.zoomBox = null;
      drag = null;
      draw();
    };
    ui.canvas.addEventListener("pointerup", up);
    ui.canvas.addEventListener("pointercancel", up);
    ui.canvas.addEventListener("pointerleave", () => {
      state.pointer = undefined;
      if (trace) hover(null);
      draw();
    });
    ui.canvas.addEventListener("dblclick", (event) => zoom(0.25, place(event)[0]));
    document.addEventListener("keydown", (event) => {
      if (!trace || event.ctrlKey || event.metaKey || event.altKey) return;
      const box = event.target.closest("input, select, textarea");
      if (box && event.key !== "Escape" && (box.type !== "checkbox" || event.key === " ")) return;
      if (event.key === " " && event.target.closest("button, summary")) return;
      const inTable = event.target.closest(".table, .side");
      const keys = {
        " ": toggle,
        r: rewind,
        R: rewind,
        "[": () => speed(0.5),
        "]": () => speed(2),
        "+": () => zoom(0.5),
        "=": () => zoom(0.5),
        "-": () => zoom(2),
        0: fit,
        f: () => setFollow(!state.follow),
        ".": () => stepTo(1),
        ",": () => stepTo(-1),
        Escape: () => {
          pin(null);
          stop();
        },
        ...(inTable ? {} : {
          ArrowLeft: () => pan(-0.15),
          ArrowRight: () => pan(0.15),
          ArrowUp: () => zoom(0.7),
          ArrowDown: () => zoom(1 / 0.7),
          Home: () => show(0, state.t1 - state.t0),
          End: toEnd,
        }),
      };
      if (!keys[event.key]) return;
      event.preventDefault();
      keys[event.key]();
    });
    new ResizeObserver(() => {
      if (!trace || !layout || Math.abs(layout.width - Math.max(320, ui.plot.clientWidth)) < 1) return;
      arrange();
      draw();
    }).observe(ui.plot);
    window.addEventListener("resize", () => {
      if (!trace) return;
      arrange();
      draw();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      palette = null;
      draw();
    });
  }

  // ---------------------------------------------------------------- where data come from

  /** Take data: the first, or those that came after. */
  function take(buffer) {
    const before = trace;
    const wholly = !before || (state.t0 <= 0 && state.t1 >= before.end);
    const shift = before ? before.start : 0;
    trace = new Trace(buffer);
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
          seen = answer.headers.get("X-Version") ?? "";
          take(await answer.arrayBuffer());
        } else if (answer.status !== 204) throw new Error(`${answer.status}: ${(await answer.text()).slice(0, 300)}`);
        ui.live.textContent = settings.follow ? "live" : "";
        root.dataset.live = "yes";
      } catch (error) {
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
})();
