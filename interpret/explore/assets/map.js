"use strict";

// Maps of rows and of live dimensions, each with a list beside it. Dimensions that the same rows use are close, and
// rows that use the same dimensions are close.

/** slider returns a labelled range from min to 1. Say formats its value, and change receives it. */
function slider(label, { value = 0, min = 0, say, change }) {
  const output = h("b", {}, say(value)); // an <output> would take the label for itself
  const input = h("input", { type: "range", min, max: 1, step: 0.01, value, "aria-valuetext": say(value) });
  input.addEventListener("input", () => {
    output.textContent = say(input.valueAsNumber);
    input.setAttribute("aria-valuetext", output.textContent);
    change(input.valueAsNumber);
  });
  return h("label", { class: "slider" }, h("span", {}, label, " ", output), input);
}

const clamp = (n, low, high) => Math.min(Math.max(n, low), high);

/** zooms holds the smallest and the largest zoom, relative to the frame. */
const zooms = [0.5, 100];

/** grey is the colour without a meaning of its own: other values of a column, and the topic "other". */
const grey = 11;

/** short returns a name of at most 24 characters. */
const short = (text) => (text.length > 24 ? text.slice(0, 23) + "…" : text);

/** maps holds the maps of the page: points, and draw. */
let maps = [];

function redrawMaps() {
  maps = maps.filter(({ frame }) => frame.isConnected);
  for (const { draw } of maps) draw();
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawMaps);
for (const when of ["beforeprint", "afterprint"])
  addEventListener(when, () => {
    document.documentElement.classList.toggle("printed", when === "beforeprint"); // light
    redrawMaps();
  });

/** isInside reports whether a point is inside a polygon. */
function isInside({ x, y }, polygon) {
  let inside = false;
  polygon.forEach(([x1, y1], i) => {
    const [x2, y2] = polygon.at(i - 1);
    if (y1 > y !== y2 > y && x < x1 + ((y - y1) * (x2 - x1)) / (y2 - y1)) inside = !inside;
  });
  return inside;
}

/**
 * mapView draws points on a canvas, with a list beside them, and returns { draw, listed, content }: listed returns the
 * points in the lasso or, without one, in view. Its options are:
 *
 *   points   points in the order in which they are named: x, y from 0 to 1, name, region, colour, and radius of the dot
 *   regions  regions whose names are drawn: x, y, words and colour, or shade, a CSS class; narrower ones at larger zooms
 *   kind     kind of points: dimension, word or text
 *   key      field that identifies a point
 *   shows    whether a point is drawn; isLit: whether it has its colour and is in the list; names: whether it has a name
 *   many     number of names when all points are in view
 *   card     text about a point; row: its line in the list; open: opens its page; load: requests texts of points
 *   wanted   point in the centre at first
 *   beside   content above the list
 *   state    settings in the address
 *   still    whether the map is small: no list, no address, no zoom by the wheel, no drag before it is zoomed
 *
 * The view is in the address after a question mark: #/map?at=0.52+0.4+3.
 */
function mapView({ points, regions, kind, key, shows = () => true, isLit = () => true, names: hasName = isLit, many, card: say, row, open, load = async () => {}, wanted, beside, state, still }) {
  const dots = h("canvas", { role: "application", tabindex: 0, "aria-roledescription": "map", "aria-label": `Map of ${plural(points.length, kind)}. Arrow keys move to the next ${kind}, Enter opens it, plus and minus zoom. The list after the map has the same items.` });
  const names = svg("g", { class: "names" });
  const outline = svg("polygon", { class: "lasso" });
  const ring = svg("circle", { class: "ring" });
  const above = svg("svg", { class: "above", "aria-hidden": "true" }, outline, ring, names);
  const card = h("div", { class: "card", "aria-live": "polite", hidden: true });
  const lassoButton = h("button", { type: "button", "aria-label": "lasso", title: "lasso: draw around points to list and save them", "aria-pressed": "false", onclick: () => surround(lasso ? undefined : []) }, "◌");
  // One dot for each colour, to read its colour in the current theme.
  const probes = h("span", { hidden: true }, Array.from({ length: grey + 1 }, (_, i) => h("i", { class: `swatch region${i}` })), h("i", { class: "swatch faint" }));
  const frame = h("div", { class: still ? "map still" : "map" }, dots, above, card, probes,
    h("div", { class: "zoom" },
      !still && lassoButton,
      h("button", { type: "button", "aria-label": "zoom in", onclick: () => zoom(1.6) }, "+"),
      h("button", { type: "button", "aria-label": "zoom out", onclick: () => zoom(1 / 1.6) }, "−"),
      h("button", { type: "button", "aria-label": "show all", onclick: () => { view = { x: 0.5, y: 0.5, zoom: 1 }; moved = false; draw(); } }, "⤢")));

  // The view: the point of the map in the middle of the frame, and the scale of the map.
  const margin = 30;
  let width = 0, height = 0, current, drawing;
  let lasso, chosen; // corners of the lasso, and the points inside; undefined without one
  const [page] = location.hash.split("?");
  const at = given().get("at");
  const [x = 0.5, y = 0.5, magnified = 1] = (at ?? "").split(" ").filter(Boolean).map(Number).map((n) => (isFinite(n) ? n : undefined));
  let view = { x: clamp(x, 0, 1), y: clamp(y, 0, 1), zoom: clamp(magnified, ...zooms) };
  let moved = at !== null; // the view differs from the initial one
  const scale = () => view.zoom * Math.max(Math.min(width, height) - 2 * margin, 50);
  const place = (p) => [width / 2 + (p.x - view.x) * scale(), height / 2 + (p.y - view.y) * scale()];
  const unplace = ([left, top]) => [view.x + (left - width / 2) / scale(), view.y + (top - height / 2) / scale()];

  const within = (p) => p.left >= 0 && p.left <= width && p.top >= 0 && p.top <= height;

  const draw = () => (drawing ??= requestAnimationFrame(drawNow));

  function drawNow() {
    drawing = undefined;
    if (width === 0) return; // not visible
    for (const p of points) [p.left, p.top] = place(p);
    drawDots();
    drawNames();
    if (current) select(current, card.classList.contains("touch"), true);
    list();
    clearTimeout(resting);
    resting = setTimeout(remember, 200); // browsers limit the rate of address changes
  }

  function drawDots() {
    const ratio = devicePixelRatio || 1;
    dots.width = width * ratio;
    dots.height = height * ratio;
    const context = dots.getContext("2d");
    const picture = context.createImageData(dots.width, dots.height), pixels = picture.data;
    const colours = Array.from(probes.children, (probe) => getComputedStyle(probe).backgroundColor.match(/[\d.]+/g).map(Number));
    const grown = clamp(view.zoom ** 0.3, 1, 2.5);
    const lit = [];
    // Dots are blended here, because a canvas takes half a second to draw 100,000 images.
    const dot = (p, colour, opacity) => {
      const radius = (Math.round(2 * p.radius * grown) / 2) * ratio, size = Math.ceil(2 * radius);
      const left = Math.round(p.left * ratio - size / 2), top = Math.round(p.top * ratio - size / 2);
      for (let y = Math.max(-top, 0); y < Math.min(size, dots.height - top); y++)
        for (let x = Math.max(-left, 0); x < Math.min(size, dots.width - left); x++) {
          const distance = Math.sqrt((x + 0.5 - size / 2) ** 2 + (y + 0.5 - size / 2) ** 2), to = 4 * (dots.width * (top + y) + left + x);
          const over = opacity * clamp(radius + 0.5 - distance, 0, 1), under = (pixels[to + 3] / 255) * (1 - over);
          for (let c = 0; over > 0 && c < 3; c++) pixels[to + c] = (colours[colour][c] * over + pixels[to + c] * under) / (over + under);
          pixels[to + 3] = 255 * (over + under);
        }
    };
    for (const p of points) {
      if (p.left < -9 || p.left > width + 9 || p.top < -9 || p.top > height + 9 || !shows(p)) continue;
      if (isLit(p)) lit.push(p);
      else dot(p, grey + 1, 0.25);
    }
    for (const p of lit.reverse()) dot(p, p.colour, 0.6); // the first ones above the others
    context.putImageData(picture, 0, 0);
    above.setAttribute("viewBox", `0 0 ${width} ${height}`);
    outline.setAttribute("points", (lasso ?? []).map(([x, y]) => place({ x, y }).map((n) => n.toFixed(1))).join(" "));
  }

  /** drawNames draws names without overlaps: first of regions, the broadest first, then of points. */
  function drawNames() {
    const taken = [], shown = [];
    const name = (text, left, top, size, attributes) => {
      const half = 0.28 * size * text.length + 4;
      const box = { left: left - half, right: left + half, top: top - size, bottom: top + 4 };
      if (box.left < 0 || box.right > width || box.top < 0 || box.bottom > height || !taken.every((other) => box.left > other.right || box.right < other.left || box.top > other.bottom || box.bottom < other.top)) return;
      taken.push(box);
      shown.push(svg("text", { x: left.toFixed(1), y: top.toFixed(1), ...attributes }, text));
    };
    const named = (p) => name(short(p.name), p.left, p.top - 9, 13, {});
    if (current?.name) named(current);
    for (const r of regions) {
      const [left, top] = place(r), radius = r.radius * scale(), broad = r.parent < 0;
      // Names of narrower regions appear when there is room; names of broad ones disappear when they fill the frame.
      if (r.words.length === 0 || left < 0 || left > width || (r.radius ? (broad ? radius > width / 2 : still || view.zoom < 1.5 || radius < 30 || radius > width / 3) : view.zoom > 6)) continue;
      const size = broad ? 16 : 13;
      const text = r.words.slice(0, width < 500 ? 1 : 2).map(short).join(" · ");
      const half = 0.28 * size * text.length + 4;
      name(text, clamp(left, half, width - half), top + 5, size, { class: `${broad ? "region" : "part"} ${r.shade ?? `region${r.colour}`}` });
    }
    let few = view.zoom < 1.5 ? many : 120;
    for (const p of points) {
      if (few === 0) break;
      if (!hasName(p) || p === current || !within(p) || !shows(p)) continue;
      named(p);
      few--;
    }
    names.replaceChildren(...shown);
  }

  /** remember saves the view in the address, for links and the browser's history, unless another address is opened. */
  let resting, own = location.hash;
  function remember() {
    if (still || !frame.isConnected || location.hash !== own) return;
    const now = new URLSearchParams();
    if (moved) now.set("at", [view.x.toFixed(4), view.y.toFixed(4), view.zoom.toFixed(3)].join(" "));
    for (const [name, value] of Object.entries(state)) if (value) now.set(name, value);
    const to = page + (now.size ? `?${now}` : "");
    if (to !== own) history.replaceState(history.state, "", to);
    own = location.hash;
  }

  function select(p, touch = false, moved = false) {
    if (current === p && !moved) return;
    const changed = current !== p;
    current = p;
    card.hidden = !p;
    card.classList.toggle("touch", touch);
    ring.setAttribute("r", p ? p.radius + 3 : 0);
    if (!p) return;
    ring.setAttribute("cx", p.left);
    ring.setAttribute("cy", p.top);
    if (changed) fillCard(p);
    placeCard();
    if (changed) load([p]).then(() => current === p && (fillCard(p), placeCard()));
  }

  const fillCard = (p) => (card.replaceChildren(), fill(card, {}, [say(p)]));

  function placeCard() {
    const { offsetWidth: w, offsetHeight: high } = card;
    const left = Math.min(Math.max(current.left - w / 2, 4), width - w - 4);
    const below = current.top + 14;
    card.style.transform = `translate(${left}px, ${below + high < height ? below : Math.max(current.top - high - 14, 4)}px)`;
  }

  /** zoom zooms by a factor around a pixel. */
  function zoom(factor, left = width / 2, top = height / 2) {
    const before = scale();
    moved = true;
    view.zoom = clamp(view.zoom * factor, ...zooms);
    view.x += (left - width / 2) * (1 / before - 1 / scale());
    view.y += (top - height / 2) * (1 / before - 1 / scale());
    draw();
  }

  function pan(dx, dy) {
    moved = true;
    view.x = clamp(view.x - dx / scale(), 0, 1);
    view.y = clamp(view.y - dy / scale(), 0, 1);
    draw();
  }

  /** surround sets the corners of the lasso, or undefined to end it. */
  function surround(corners) {
    lasso = corners;
    chosen = corners?.length > 2 ? points.filter((p) => isInside(p, corners)) : undefined;
    lassoButton.setAttribute("aria-pressed", String(Boolean(lasso)));
    frame.classList.toggle("surrounding", Boolean(lasso));
    draw();
  }

  /** closest returns the visible point nearest to a pixel, within a distance. */
  function closest(left, top, near) {
    let found, least = near * near;
    for (const p of points) {
      const d = (p.left - left) ** 2 + (p.top - top) ** 2;
      if (d < least && shows(p)) [found, least] = [p, d];
    }
    return found;
  }

  const pointers = new Map(); // positions of pressed pointers, by id
  let dragged = 0;
  const local = (event) => {
    const box = dots.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  dots.addEventListener("pointerdown", (event) => {
    pointers.set(event.pointerId, local(event));
    if (pointers.size === 1) dragged = 0;
    if (lasso) {
      select(undefined); // the card would cover the lasso
      surround([unplace(local(event))]);
    }
    dots.setPointerCapture(event.pointerId);
  });
  dots.addEventListener("pointermove", (event) => {
    const [left, top] = local(event);
    const before = pointers.get(event.pointerId);
    if (!before) return select(closest(left, top, 24));
    dragged += Math.hypot(left - before[0], top - before[1]);
    if (still && view.zoom === 1) return; // let a finger scroll the page
    const other = [...pointers].find(([id]) => id !== event.pointerId)?.[1];
    if (other) {
      const distance = (x, y) => Math.max(Math.hypot(x - other[0], y - other[1]), 1);
      zoom(distance(left, top) / distance(...before), ...other);
    } else if (lasso) {
      lasso.push(unplace([left, top]));
      draw();
    } else pan(left - before[0], top - before[1]);
    pointers.set(event.pointerId, [left, top]);
  });
  dots.addEventListener("pointerup", (event) => {
    const down = pointers.delete(event.pointerId);
    if (down && lasso && dragged > 5) return surround(lasso);
    if (!down || dragged > 5 || pointers.size > 0) return;
    const touch = event.pointerType === "touch";
    const p = closest(...local(event), touch ? 32 : 24);
    if (touch) select(p, true);
    else if (p) open(p);
  });
  dots.addEventListener("pointercancel", (event) => pointers.delete(event.pointerId));
  dots.addEventListener("pointerleave", () => pointers.size === 0 && !card.classList.contains("touch") && select(undefined));
  if (!still) dots.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(Math.exp(-event.deltaY / 400), ...local(event));
  }, { passive: false });
  dots.addEventListener("keydown", (event) => {
    const direction = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (direction) step(...direction);
    else if (event.key === "Enter") current && open(current);
    else if (event.key === "Escape") lasso ? surround(undefined) : select(undefined);
    else if (event.key === "+" || event.key === "=") zoom(1.6);
    else if (event.key === "-") zoom(1 / 1.6);
    else return;
    event.preventDefault();
  });

  /** step selects the nearest point in a direction, within 45°. */
  function step(dx, dy) {
    const from = current ?? { left: width / 2, top: height / 2 };
    let found, least = Infinity;
    for (const p of points) {
      const along = (p.left - from.left) * dx + (p.top - from.top) * dy;
      const across = Math.abs((p.left - from.left) * dy) + Math.abs((p.top - from.top) * dx);
      if (p !== current && shows(p) && along > 0 && across <= along && along + 2 * across < least) [found, least] = [p, along + 2 * across];
    }
    if (!found && !current) found = points.find(shows);
    if (!found) return;
    select(found);
    // Keep it in the frame.
    pan(Math.max(margin - found.left, 0) + Math.min(width - margin - found.left, 0), Math.max(margin - found.top, 0) + Math.min(height - margin - found.top, 0));
  }

  // The list of the points in view or in the lasso.
  const rows = h("ul", { class: "plain" });
  const status = h("span", { role: "status" });
  const listed = () => (chosen ?? points.filter(within)).filter((p) => shows(p) && isLit(p));
  let asked = 0;
  function list() {
    if (still) return;
    const all = listed();
    const text = `${plural(all.length, kind)} ${chosen ? "in the lasso" : "in view"}`;
    if (status.textContent !== text) status.textContent = text;
    const those = all.slice(0, 40);
    const same = those.length === rows.children.length && those.every((p, i) => rows.children[i].dataset[key] === String(p[key]) && rows.children[i].classList.contains(`region${p.colour}`));
    if (same) return;
    const mine = ++asked;
    load(those).then(() => {
      if (mine !== asked) return; // the view has changed
      rows.replaceChildren(
        ...those.map((p) =>
          h("li", { [`data-${key}`]: p[key], class: `region${p.colour}`, onpointerenter: () => select(p), onpointerleave: () => select(undefined), onfocusin: () => select(p) },
            h("span", { class: "swatch" }),
            row(p))));
      if (those.length === 0) rows.append(h("li", { class: "note" }, chosen ? "None: draw around some, or press Escape." : "None: zoom out, or relax the filters."));
    });
  }

  if (wanted && !moved) view = { x: wanted.x, y: wanted.y, zoom: 3 };
  new ResizeObserver(() => {
    if (frame.clientWidth === 0) return; // not visible
    width = frame.clientWidth;
    height = frame.clientHeight;
    drawNow();
    if (wanted && !current) select(wanted, true);
  }).observe(frame);
  maps.push({ frame, points, draw });

  return {
    draw,
    listed,
    content: still ? frame : h("div", { class: "map-page" },
      frame,
      h("div", { class: "beside" }, beside, h("section", { tabindex: embedded ? 0 : null }, h("h2", {}, status), rows))),
  };
}

/**
 * legendOf lists the meanings of colours: [key, name, colour, count]. A click on some dims the other ones; their keys
 * are in only, a Set. It calls changed after a click.
 */
const legendOf = (title, entries, only, changed) => entries.length > 1 && h("section", {},
  h("h2", {}, title),
  h("ul", { class: "plain" }, entries.map(([key, name, colour, count]) => h("li", {}, h("button", { type: "button", class: "link", "aria-pressed": String(only.has(key)), onclick: (event) => {
    if (!only.delete(key)) only.add(key);
    event.currentTarget.setAttribute("aria-pressed", String(only.has(key)));
    changed();
  } }, h("span", { class: `swatch region${colour}` }), h("span", {}, name), count !== undefined && h("span", { class: "number" }, whole(count)))))));

/** onlyOf returns the Set of keys in the address that a legend shows, and a function that saves it in the state of a map. */
function onlyOf(state) {
  const only = new Set((given().get("only") ?? "").split(" ").filter((key) => /^-?\d{1,9}$/.test(key)).map(Number));
  const save = () => (state.only = [...only].join(" "));
  save();
  return [only, save];
}

/** mapTabs links the two maps. */
const mapTabs = (rows) => (!embedded || (embedded.rows && hasDimensions())) && h("nav", { class: "tabs", "aria-label": "Maps" },
  [["rows", `${unit()}s`, rows], ["map", "dimensions", !rows]].map(([page, text, here]) => h("a", { href: address(page), "aria-current": here ? "page" : null }, text)));

/**
 * mapPage shows the map of dimensions, centred at a dimension (mapPage("7")), or with the dimensions of a word
 * highlighted (mapPage("word", "bank")).
 * The sliders are in the address: #/map?words=0.3.
 */
async function mapPage(number, word) {
  if (word !== undefined) number = undefined;
  const [{ points, regions }, lit] = await Promise.all([
    ask("map").then((map) => ({ ...map, points: map.points.map((p) => ({ ...p, label: model.dimensions[p.dimension] })) })),
    word === undefined ? undefined : ask("word", "word", word),
  ]);
  const wanted = points.find((p) => String(p.dimension) === number);
  if (number !== undefined && !wanted) throw new Missing(`Dimension ${number} is not on the map: its atom is dead.`, []);
  const values = new Map(lit?.active.map((w) => [w.dimension, w.value]));
  const strongest = Math.max(...[...values.values()].map(Math.abs), 0);
  const most = Math.max(...points.map((p) => p.label.words));
  const small = Math.max(Math.min(Math.sqrt(800 / points.length), 1), 0.6);
  for (const p of points) {
    p.value = values.get(p.dimension);
    p.pole = p.value ?? strongPole(p.dimension);
    p.words = ends(p.dimension, p.pole);
    p.name = (p.pole < 0 ? "−" : "") + ((named.get(p.dimension)?.name ?? labelWords(p.dimension, p.pole)[0]) || p.words[0]);
    p.colour = regions[p.region].colour;
    const share = p.value === undefined ? 0 : Math.abs(p.value) / strongest;
    p.radius = lit ? (share ? 2.5 + 7 * share : 1.5) : small * (2 + 5 * Math.sqrt(p.label.words / most));
  }
  // Highlighted points are above the others, and are named first.
  if (lit) points.sort((p, q) => Math.abs(q.value ?? 0) - Math.abs(p.value ?? 0));
  const words = (t) => Math.max(Math.round(most ** t), 1);
  const part = (name) => clamp(Number(given().get(name)) || 0, 0, 1);
  const state = { words: part("words"), accuracy: part("accuracy") };
  const [only, save] = onlyOf(state);
  const isLit = (p) => (lit ? p.value !== undefined : only.size === 0 || only.has(p.region));
  const { draw, content } = mapView({
    points, regions: lit ? [] : regions, wanted, state, kind: "dimension", key: "dimension", many: lit ? 40 : 24, isLit,
    shows: (p) => (!state.words || p.label.words >= words(state.words)) && (accuracyOf(p.dimension, p.pole) ?? 0) >= state.accuracy,
    card: (p) => [
      h("strong", {}, dimensionLink(p.dimension, `dimension ${p.dimension}`)), ` ${plural(p.label.words, unit())}`,
      p.value !== undefined && `, ${decimal(p.value)} for ${textOf(lit.word).slice(0, 60)}`,
      h("br"), p.words.join(" ")],
    row: (p) => nameLink(p.dimension, p.pole),
    open: (p) => has("dimension", p.dimension) && go("dimension", p.dimension),
    beside: !lit && legendOf("Regions", regions.map((r, i) => [i, listText(r.words), r.colour]).filter((_, i) => regions[i].words.length > 0), only, () => { save(); draw(); }),
  });
  return {
    title: lit ? `${textOf(lit.word).slice(0, 80)} on the map` : "map",
    content: [
      heading(lit ? [wordLink(lit.word), h("small", {}, " on the map")] : "Map of dimensions"),
      h("p", { class: "lead" },
        lit ? [`The size of a dot shows the absolute value of ${model.texts ? "the text" : lit.word} in that dimension. `, h("a", { href: address("map") }, "Show all dimensions")]
          : `Each dot is a dimension. Dimensions that the same ${unit()}s use are close; dimensions that many ${unit()}s use are large. Keywords name the coloured regions.`),
      h("div", { class: "tools map-tools" },
        mapTabs(false),
        isSearchable() && wordSearch({ label: `Highlight the dimensions of a ${unit()}`, placeholder: lit ? `highlight another ${unit()}` : `highlight a ${unit()}`, choose: (chosen) => go("map", "word", chosen) }),
        points.length > 0 && slider(`${model.texts ? "Texts" : "Words"} per dimension, at least`, { value: state.words, say: (t) => whole(words(t)), change: (t) => { state.words = t; draw(); } }),
        isMeasured() && slider("Word intrusion accuracy, at least", { value: state.accuracy, say: percent, change: (t) => { state.accuracy = t; draw(); } })),
      content,
    ],
  };
}

/** dayOf returns the number of days from 1970 to a date such as 2024-03-05, or NaN. */
const dayOf = (date) => Date.parse(date) / 864e5;

/**
 * rowsPage shows the map of rows, centred at a row, with colours by topic, region or column. The address has the settings:
 * #/rows?colour=label&only=3+5&is.label=0&from.day=2024-03-05.
 */
async function rowsPage(word) {
  const [{ points, regions, columns, dates }, found] = await Promise.all([loadRows(), word === undefined ? undefined : ask("word", "word", word)]);
  const wanted = points.find((p) => p.word === found?.word);
  if (found && !wanted) throw new Missing(`The map shows ${whole(points.length)} ${unit()}s, without this one. This is its page:`, [found.word]);
  for (const p of points) {
    p.name = model.texts ? "" : visible(p.word);
    p.radius = clamp(110 / Math.sqrt(points.length), 1.2, 4);
  }
  const state = Object.fromEntries([...given()].filter(([name]) => /^(colour|is\.|from\.|to\.)/.test(name)));
  const [only, save] = onlyOf(state);
  const legend = h("div", {});
  const shows = (p) => columns.every((c) => !state[`is.${c.name}`] || c.of[p.at] === Number(state[`is.${c.name}`]))
    && dates.every((d) => !(d.days[p.at] < dayOf(state[`from.${d.name}`])) && !(d.days[p.at] > dayOf(state[`to.${d.name}`]))
      && (d.days[p.at] !== null || !(state[`from.${d.name}`] || state[`to.${d.name}`])));
  function paint() {
    const column = columns.find((c) => c.name === state.colour);
    for (const r of regions) r.shade = column ? "" : undefined;
    for (const p of points) {
      p.value = column ? column.of[p.at] : p.broad;
      p.colour = p.value < 0 ? grey : column ? p.value : regions[p.value].colour;
    }
    const counts = new Map();
    for (const p of points) counts.set(p.value, (counts.get(p.value) ?? 0) + 1);
    const entries = column
      ? [...column.values.map((value, i) => [i, h("bdi", {}, valueName(value)), i]), [-1, "others", grey]]
      : regions.map((r, i) => [i, listText(r.words), r.colour]).filter(([i]) => regions[i].parent < 0);
    legend.replaceChildren();
    fill(legend, {}, [legendOf(column ? h("bdi", {}, visible(column.name)) : model.themes ? "Topics" : "Regions",
      entries.filter(([key]) => counts.has(key)).map((entry) => [...entry, counts.get(entry[0])]), only, () => { save(); draw(); })]);
  }
  paint();
  const { draw, listed, content } = mapView({
    points, regions, wanted, state, kind: unit(), key: "row", many: 24, names: () => !model.texts,
    shows, isLit: (p) => only.size === 0 || only.has(p.value),
    card: (p) => [h("strong", {}, wordLink(p.word)), rowFacts(p, regions)],
    row: (p) => wordLink(p.word, { class: "excerpt" }),
    open: (p) => openRow(p, regions),
    load: loadTexts,
    beside: legend,
  });
  const select = (name, label, options) => h("label", {}, label, " ", h("select", { onchange: (event) => {
    state[name] = event.currentTarget.value;
    if (name === "colour") {
      only.clear();
      save();
      paint();
    }
    draw();
  } }, options.map(([value, text]) => h("option", { value, selected: value === (state[name] ?? "") }, text))));
  const filters = [
    columns.map((c) => select(`is.${c.name}`, h("bdi", {}, visible(c.name)), [["", "any"], ...c.values.map((value, i) => [String(i), valueName(value)]), ["-1", "others"]])),
    dates.map((d) => ["from", "to"].map((end) => h("label", {}, h("bdi", {}, visible(d.name)), ` ${end} `, h("input", { type: "date", value: state[`${end}.${d.name}`] ?? "", onchange: (event) => { state[`${end}.${d.name}`] = event.currentTarget.value; draw(); } })))),
  ].flat(2);
  return {
    title: `map of ${unit()}s`,
    content: [
      heading(`Map of ${unit()}s`),
      h("p", { class: "lead" }, `Each dot is a ${unit()}. Similar ${unit()}s are close.`,
        points.length < model.words && ` The map shows ${model.texts ? "" : "the first "}${whole(points.length)} of ${whole(model.words)}.`),
      h("div", { class: "tools map-tools" },
        mapTabs(true),
        isSearchable() && wordSearch({ label: `Show a ${unit()} on the map`, placeholder: `show a ${unit()}`, choose: (chosen) => go("rows", chosen) }),
        columns.length > 0 && select("colour", "Colours by", [["", model.themes ? "topic" : "region"], ...columns.map((c) => [c.name, visible(c.name)])]),
        filters.length > 0 && h("details", { class: "only", open: Object.keys(state).some((name) => name.includes(".") && state[name]) }, h("summary", {}, "Filter"), h("div", { class: "tools" }, filters))),
      content,
    ],
    table: async () => {
      const chosen = listed();
      await loadTexts(chosen);
      const names = (columnsOf.get(chosen[0]?.word) ?? []).map(([name]) => name);
      return [[model.texts ? "id" : "word", "topic", ...names, model.texts && "text"].filter(Boolean), ...chosen.map((p) =>
        [p.word, topicsOf(p, regions).map((r) => r.words.join(", ")).join(" › "), ...(columnsOf.get(p.word) ?? []).map(([, value]) => value), ...(model.texts ? [textOf(p.word)] : [])])];
    },
  };
}

/** topicsOf returns the topics or regions of a point, the broadest first. */
const topicsOf = (p, regions, r = regions[p.region]) => (r ? [...topicsOf(p, regions, regions[r.parent] ?? null), r] : []);

/** rowFacts shows the topics and columns of a point. */
const rowFacts = (p, regions) => [
  topicsOf(p, regions).slice(0, 2).map((r, i) => [i > 0 ? " › " : h("br"), listText(r.words)]),
  (columnsOf.get(p.word) ?? []).slice(0, 4).map(([name, value]) => value && [h("br"), h("bdi", {}, visible(name)), ": ", h("bdi", {}, visible(value.slice(0, 80)))])];
