// Numbers and times as text, and the marks of an axis.

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
