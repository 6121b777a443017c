"use strict";

// The map of all dimensions that are in use. Similar atoms are close.

async function mapPage(number) {
  const points = (await ask("map")).map((p) => ({ ...p, label: model.dimensions[p.dimension] }));
  const wanted = points.find((p) => String(p.dimension) === number);
  if (number !== undefined && !wanted) throw new Missing(`Dimension ${number} is not on the map: no word uses it.`, []);
  const most = Math.max(...points.map((p) => p.label.words));
  const small = Math.max(Math.min(Math.sqrt(800 / points.length), 1), 0.6);
  for (const p of points) {
    p.name = p.label.top[0] ?? p.label.bottom[0];
    p.circle = svg("circle", { r: (small * (2 + 5 * Math.sqrt(p.label.words / most))).toFixed(1), "data-dimension": p.dimension, class: has("dimension", p.dimension) ? "dot" : "dot faint" });
  }
  const names = svg("g", { class: "names" });
  const drawing = svg("svg", { role: "application", tabindex: 0, "aria-roledescription": "map", "aria-label": `Map of ${plural(points.length, "dimension")}. Arrow keys move to the next one, Enter opens it, plus and minus zoom.` }, points.map((p) => p.circle), names);
  const card = h("div", { class: "card", "aria-live": "polite", hidden: true });
  const frame = h("div", { class: "map" }, drawing, card,
    h("div", { class: "zoom" },
      h("button", { type: "button", "aria-label": "zoom in", onclick: () => zoom(1.6) }, "+"),
      h("button", { type: "button", "aria-label": "zoom out", onclick: () => zoom(1 / 1.6) }, "−"),
      h("button", { type: "button", "aria-label": "show all", onclick: () => { view = { x: 0.5, y: 0.5, zoom: 1 }; draw(); } }, "⤢")));

  // The view: what point of the map is in the middle of the frame, and how much
  // larger than the frame the map is. It is stretched to the frame's shape.
  const margin = 40;
  let width = 0, height = 0, current;
  let view = { x: 0.5, y: 0.5, zoom: 1 };
  const scale = (size) => view.zoom * Math.max(size - 2 * margin, 50);

  function draw() {
    for (const p of points) {
      p.left = width / 2 + (p.x - view.x) * scale(width);
      p.top = height / 2 + (p.y - view.y) * scale(height);
      p.circle.setAttribute("cx", p.left.toFixed(1));
      p.circle.setAttribute("cy", p.top.toFixed(1));
    }
    // Names where there is room, those of the strongest dimensions first.
    const taken = [];
    const free = (box) => taken.every((other) => box.left > other.right || box.right < other.left || box.top > other.bottom || box.bottom < other.top);
    const shown = [];
    for (const p of current ? [current, ...points] : points) {
      const half = 3.6 * Math.min(p.name.length, 24) + 6;
      const box = { left: p.left - half, right: p.left + half, top: p.top - 22, bottom: p.top + 2 };
      if (box.left < 0 || box.right > width || box.top < 0 || p.top > height || !free(box)) continue;
      taken.push(box);
      shown.push(svg("text", { x: p.left.toFixed(1), y: (p.top - 9).toFixed(1) }, p.name.length > 24 ? p.name.slice(0, 23) + "…" : p.name));
      if (shown.length === 120) break;
    }
    names.replaceChildren(...shown);
    if (current) placeCard();
  }

  function select(p, touch = false) {
    if (current === p) return;
    current?.circle.classList.remove("current");
    current = p;
    card.hidden = !p;
    card.classList.toggle("touch", touch);
    if (!p) return;
    p.circle.classList.add("current");
    drawing.insertBefore(p.circle, names); // above the others
    card.replaceChildren(
      h("strong", {}, dimensionLink(p.dimension, `dimension ${p.dimension}`)), ` ${plural(p.label.words, "word")}`,
      h("br"), (p.label.top.length > 0 ? p.label.top : p.label.bottom).join(" "));
    placeCard();
  }

  function placeCard() {
    const { offsetWidth: w, offsetHeight: high } = card;
    const left = Math.min(Math.max(current.left - w / 2, 4), width - w - 4);
    const below = current.top + 14;
    card.style.transform = `translate(${left}px, ${below + high < height ? below : Math.max(current.top - high - 14, 4)}px)`;
  }

  const open = (p) => p && has("dimension", p.dimension) && go("dimension", p.dimension);

  /** zoom keeps the place of the given pixel. */
  function zoom(factor, left = width / 2, top = height / 2) {
    const before = [scale(width), scale(height)];
    view.zoom = Math.min(Math.max(view.zoom * factor, 0.5), 40);
    view.x += (left - width / 2) * (1 / before[0] - 1 / scale(width));
    view.y += (top - height / 2) * (1 / before[1] - 1 / scale(height));
    draw();
  }

  function pan(dx, dy) {
    view.x = Math.min(Math.max(view.x - dx / scale(width), 0), 1);
    view.y = Math.min(Math.max(view.y - dy / scale(height), 0), 1);
    draw();
  }

  /** closest is the point next to a pixel, if it is near. */
  function closest(left, top, near) {
    let found, least = near * near;
    for (const p of points) {
      const d = (p.left - left) ** 2 + (p.top - top) ** 2;
      if (d < least) [found, least] = [p, d];
    }
    return found;
  }

  const pointers = new Map(); // that are down: where they were
  let dragged = 0;
  const local = (event) => {
    const box = drawing.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  drawing.addEventListener("pointerdown", (event) => {
    pointers.set(event.pointerId, local(event));
    if (pointers.size === 1) dragged = 0;
    drawing.setPointerCapture(event.pointerId);
  });
  drawing.addEventListener("pointermove", (event) => {
    const [left, top] = local(event);
    const before = pointers.get(event.pointerId);
    if (!before) return select(closest(left, top, 24));
    dragged += Math.hypot(left - before[0], top - before[1]);
    const other = [...pointers].find(([id]) => id !== event.pointerId)?.[1];
    if (other) {
      const distance = (x, y) => Math.max(Math.hypot(x - other[0], y - other[1]), 1);
      zoom(distance(left, top) / distance(...before), ...other);
    } else pan(left - before[0], top - before[1]);
    pointers.set(event.pointerId, [left, top]);
  });
  drawing.addEventListener("pointerup", (event) => {
    const down = pointers.delete(event.pointerId);
    if (!down || dragged > 5 || pointers.size > 0) return;
    const touch = event.pointerType === "touch";
    const p = closest(...local(event), touch ? 32 : 24);
    if (touch) select(p, true);
    else open(p);
  });
  drawing.addEventListener("pointercancel", (event) => pointers.delete(event.pointerId));
  drawing.addEventListener("pointerleave", () => pointers.size === 0 && !card.classList.contains("touch") && select(undefined));
  drawing.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(Math.exp(-event.deltaY / 400), ...local(event));
  }, { passive: false });
  drawing.addEventListener("keydown", (event) => {
    const direction = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (direction) step(...direction);
    else if (event.key === "Enter") open(current);
    else if (event.key === "Escape") select(undefined);
    else if (event.key === "+" || event.key === "=") zoom(1.6);
    else if (event.key === "-") zoom(1 / 1.6);
    else return;
    event.preventDefault();
  });

  /** step goes to the point that is next in a direction, within 45° of it. */
  function step(dx, dy) {
    const from = current ?? { left: width / 2, top: height / 2 };
    let found, least = Infinity;
    for (const p of points) {
      const along = (p.left - from.left) * dx + (p.top - from.top) * dy;
      const across = Math.abs((p.left - from.left) * dy) + Math.abs((p.top - from.top) * dx);
      if (p !== current && along > 0 && across <= along && along + 2 * across < least) [found, least] = [p, along + 2 * across];
    }
    if (!found && !current) found = points[0];
    if (!found) return;
    select(found);
    // Keep it in the frame.
    pan(Math.max(margin - found.left, 0) + Math.min(width - margin - found.left, 0), Math.max(margin - found.top, 0) + Math.min(height - margin - found.top, 0));
  }

  if (wanted) view = { x: wanted.x, y: wanted.y, zoom: 3 };
  new ResizeObserver(() => {
    if (frame.clientWidth === 0) return; // no longer shown
    width = frame.clientWidth;
    height = frame.clientHeight;
    drawing.setAttribute("viewBox", `0 0 ${width} ${height}`);
    draw();
    if (wanted && !current) select(wanted, true);
  }).observe(frame);

  return {
    title: "map",
    content: [
      heading("Map"),
      h("p", { class: "lead" }, "Every dot is a dimension; those with similar atoms are close. Large dots have many words. The names are top words."),
      frame,
    ],
  };
}
