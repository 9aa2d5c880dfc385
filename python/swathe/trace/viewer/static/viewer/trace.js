// What is shown: the columns of a trace, unpacked (see packed.py), and the lines through it.

const TYPES = { u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, i4: Int32Array, f8: Float64Array };
const DONE = 0;
const UNFINISHED = 2;
const FAILED = 3;
const AROUND = 4; // Of pieces to and from what is around targets: waiting is nobody's outcome.
const PLANES = [AROUND, DONE, 1, UNFINISHED, FAILED]; // The last lies above.

const rising = (data) => Boolean(data && "first" in data);

/** The columns of a trace. Times are microseconds after its first event. */
class Trace {
  constructor({ header, bytes }) {
    const array = (data) => new TYPES[data.type](bytes.buffer, bytes.byteOffset + data.at, data.count);
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
    this.partner = array(header.partner).slice();
    for (let i = 0; i < this.count; i += 1) this.partner[i] = this.partner[i] ? i + this.partner[i] : -1;
    this.lanes = header.lanes;
    this.loads = header.loads;
    this.end = this.count ? this.time[this.count - 1] : 0;
    this.fields = new Map();
    for (const field of header.fields) {
      const kept = { ...field };
      if (field.data) kept.data = array(field.data);
      if (field.words) kept.words = JSON.parse(`[${new TextDecoder().decode(array(field.words))}]`);
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
