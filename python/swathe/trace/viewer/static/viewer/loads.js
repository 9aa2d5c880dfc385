// Load-lines: numbers over time, made of events.

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
  const apart = trace.header.apart.filter((field) => new Set(having.map((event) => trace.value(field, event))).size > 1);
  const found = new Map();
  for (const event of having) {
    const name = apart.map((field) => trace.value(field, event) ?? "").filter(Boolean).join(" ") || load.name;
    if (!found.has(name)) found.set(name, { name, times: [], values: [] });
    found.get(name).times.push(trace.time[event]);
    found.get(name).values.push(trace.value(load.field, event));
  }
  return [...found.values()];
}
