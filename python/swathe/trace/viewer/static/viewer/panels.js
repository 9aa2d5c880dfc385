// Each kind of panel: lifelines, points, load-lines, marks, the whole run.

const FEW = 5000; // Pieces of line that are drawn one by one.

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
