// Pointers and keys.

function listen() {
  const place = (event) => {
    const box = ui.canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  const pointers = new Map();
  let drag = null;
  const overview = (py) => py < OVERVIEW + 8;
  ui.canvas.addEventListener("wheel", (event) => {
    if (!trace || (settings.section && document.activeElement !== ui.canvas)) return;
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
  // In a section of a page, keys and wheel move the page until the viewer is in use.
  (settings.section ? root : document).addEventListener("keydown", (event) => {
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
