"use strict";

// Maps of live dimensions and of rows, each with a list beside it. Dimensions that the same rows use are close, and
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
const zooms = [0.5, 40];

/** short returns a name of at most 24 characters. */
const short = (text) => (text.length > 24 ? text.slice(0, 23) + "…" : text);

/**
 * mapView draws points, with a list beside them, and returns { draw, content }. Its options are:
 *
 *   points   points in the order in which they are named: x, y from 0 to 1, name, region, colour, and radius and classes of the dot
 *   regions  regions: x, y, words and colour, or shade, a CSS class; their names are drawn if namedRegions is true
 *   kind     kind of points: dimension, word or text
 *   key      field that identifies a point
 *   shows    whether a point is drawn; names: whether it has a name at a zoom; lists: whether it is in the list
 *   many     number of names when all points are in view
 *   card     text about a point; row: its line in the list; open: opens its page
 *   wanted   point in the centre at first
 *   beside   function that returns the content above the list; its argument is a function that zooms to a region
 *   state    settings in the address
 *   still    whether the map is small: no list, no address, no zoom by the wheel, no drag before it is zoomed
 *
 * The view is in the address after a question mark: #/map?at=0.52+0.4+3.
 */
function mapView({ points, regions, kind, key, shows, names: hasName = shows, lists = shows, many, namedRegions, card: say, row, open, wanted, beside, state, still }) {
  for (const p of points) p.circle = svg("circle", { class: "dot", r: p.radius.toFixed(1), [`data-${key}`]: p[key] });
  const names = svg("g", { class: "names" });
  const drawing = svg("svg", { role: "application", tabindex: 0, "aria-roledescription": "map", "aria-label": `Map of ${plural(points.length, kind)}. Arrow keys move to the next ${kind}, Enter opens it, plus and minus zoom. The list after the map has the same items.` }, points.toReversed().map((p) => p.circle), names);
  const card = h("div", { class: "card", "aria-live": "polite", hidden: true });
  const frame = h("div", { class: still ? "map still" : "map" }, drawing, card,
    h("div", { class: "zoom" },
      h("button", { type: "button", "aria-label": "zoom in", onclick: () => zoom(1.6) }, "+"),
      h("button", { type: "button", "aria-label": "zoom out", onclick: () => zoom(1 / 1.6) }, "−"),
      h("button", { type: "button", "aria-label": "show all", onclick: () => { view = { x: 0.5, y: 0.5, zoom: 1 }; moved = false; draw(); } }, "⤢")));

  // The view: the point of the map in the middle of the frame, and the scale of the map.
  const margin = 30;
  let width = 0, height = 0, current;
  const [page] = location.hash.split("?");
  const at = given().get("at");
  const [x = 0.5, y = 0.5, magnified = 1] = (at ?? "").split(" ").filter(Boolean).map(Number).map((n) => (isFinite(n) ? n : undefined));
  let view = { x: clamp(x, 0, 1), y: clamp(y, 0, 1), zoom: clamp(magnified, ...zooms) };
  let moved = at !== null; // the view differs from the initial one
  const scale = () => view.zoom * Math.max(Math.min(width, height) - 2 * margin, 50);
  const place = (p) => [width / 2 + (p.x - view.x) * scale(), height / 2 + (p.y - view.y) * scale()];

  const within = (p) => p.left >= 0 && p.left <= width && p.top >= 0 && p.top <= height;

  function draw() {
    for (const p of points) {
      [p.left, p.top] = place(p);
      p.circle.setAttribute("cx", p.left.toFixed(1));
      p.circle.setAttribute("cy", p.top.toFixed(1));
      p.circle.setAttribute("class", ["dot", `region${p.colour}`, p.classes, p === current ? "current" : "", shows(p) ? "" : "out"].join(" "));
    }
    // Draw names without overlaps: first of regions, then of points.
    const taken = [];
    const shown = [];
    const name = (text, left, top, size, attributes) => {
      const half = 0.28 * size * text.length + 4;
      const box = { left: left - half, right: left + half, top: top - size, bottom: top + 4 };
      if (box.left < 0 || box.right > width || box.top < 0 || box.bottom > height || !taken.every((other) => box.left > other.right || box.right < other.left || box.top > other.bottom || box.bottom < other.top)) return;
      taken.push(box);
      shown.push(svg("text", { x: left.toFixed(1), y: top.toFixed(1), ...attributes }, text));
    };
    const above = (p, attributes) => name(short(p.name), p.left, p.top - 9, 13, attributes);
    if (current) above(current);
    if (namedRegions && view.zoom < 6)
      for (const r of regions)
        if (r.words.length > 0) {
          const [left, top] = place(r);
          if (left < 0 || left > width) continue;
          const text = r.words.slice(0, width < 500 ? 1 : 2).map(short).join(" · ");
          const half = 0.28 * 16 * text.length + 4;
          name(text, Math.min(Math.max(left, half), width - half), top + 5, 16, { class: `region ${r.shade ?? `region${r.colour}`}` });
        }
    const few = view.zoom < 1.5 ? many : 120;
    const before = shown.length;
    for (const p of points) {
      if (shown.length - before >= few) break;
      if (p !== current && within(p) && shows(p) && hasName(p, view.zoom)) above(p);
    }
    names.replaceChildren(...shown);
    if (current) placeCard();
    list();
    clearTimeout(resting);
    resting = setTimeout(remember, 200); // browsers limit the rate of address changes
  }

  /** remember saves the view in the address, for links and the browser's history. */
  let resting;
  function remember() {
    const [path, before = ""] = location.hash.split("?");
    if (still || !frame.isConnected || path !== page) return; // another page is open
    const now = new URLSearchParams();
    if (moved) now.set("at", [view.x.toFixed(4), view.y.toFixed(4), view.zoom.toFixed(3)].join(" "));
    for (const [name, value] of Object.entries(state)) if (value) now.set(name, value);
    if (now.toString() !== before) history.replaceState(history.state, "", page + (now.size ? `?${now}` : ""));
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
    card.replaceChildren();
    fill(card, {}, say(p));
    placeCard();
  }

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
    if (still && view.zoom === 1) return; // let a finger scroll the page
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
    else if (p) open(p);
  });
  drawing.addEventListener("pointercancel", (event) => pointers.delete(event.pointerId));
  drawing.addEventListener("pointerleave", () => pointers.size === 0 && !card.classList.contains("touch") && select(undefined));
  if (!still) drawing.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(Math.exp(-event.deltaY / 400), ...local(event));
  }, { passive: false });
  drawing.addEventListener("keydown", (event) => {
    const direction = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (direction) step(...direction);
    else if (event.key === "Enter") current && open(current);
    else if (event.key === "Escape") select(undefined);
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

  // The list of visible points beside the map.
  const rows = h("ul", { class: "plain" });
  const status = h("h2", { role: "status" });
  function list() {
    if (still) return;
    const all = points.filter((p) => shows(p) && within(p) && lists(p));
    const text = `${plural(all.length, kind)} in view`;
    if (status.textContent !== text) status.textContent = text;
    const those = all.slice(0, 40);
    if (those.length === rows.children.length && those.every((p, i) => rows.children[i].dataset[key] === String(p[key]) && rows.children[i].classList.contains(`region${p.colour}`))) return;
    rows.replaceChildren(
      ...those.map((p) =>
        h("li", { [`data-${key}`]: p[key], class: `region${p.colour}`, onpointerenter: () => select(p), onpointerleave: () => select(undefined), onfocusin: () => select(p) },
          h("span", { class: "swatch" }),
          row(p))));
    if (those.length === 0) rows.append(h("li", { class: "note" }, "None: zoom out, or lower the limits."));
  }

  /** enter zooms to a region, so that 90 % of its points are visible. */
  function enter(r) {
    const own = points.filter((p) => regions[p.region] === r).map((p) => Math.max(Math.abs(p.x - r.x), Math.abs(p.y - r.y))).sort((a, b) => a - b);
    moved = true;
    view = { x: r.x, y: r.y, zoom: Math.min(Math.max(0.45 / (own[Math.floor(0.9 * own.length)] || 1), 1), 12) };
    draw();
    frame.scrollIntoView({ block: "nearest" });
  }

  if (wanted && !moved) view = { x: wanted.x, y: wanted.y, zoom: 3 };
  new ResizeObserver(() => {
    if (frame.clientWidth === 0) return; // not visible
    width = frame.clientWidth;
    height = frame.clientHeight;
    drawing.setAttribute("viewBox", `0 0 ${width} ${height}`);
    draw();
    if (wanted && !current) select(wanted, true);
  }).observe(frame);

  return {
    draw,
    content: still ? frame : h("div", { class: "map-page" },
      frame,
      h("div", { class: "beside" }, beside(enter), h("section", { tabindex: embedded ? 0 : null }, status, rows))),
  };
}

/** regionsList lists the names of regions. A click zooms to a region. */
const regionsList = (regions, enter, title = "Regions") => regions.length > 1 && h("section", {},
  h("h2", {}, title),
  h("ul", { class: "plain" }, regions.filter((r) => r.words.length > 0).map((r) => h("li", {}, h("button", { type: "button", class: "link", onclick: () => enter(r) }, h("span", { class: `swatch region${r.colour}` }), h("span", {}, listText(r.words)))))));

/** mapTabs links the two maps. */
const mapTabs = (rows) => (!embedded || embedded.rows) && h("nav", { class: "tabs", "aria-label": "Maps" },
  [["map", "dimensions", !rows], ["rows", `${unit()}s`, rows]].map(([page, text, here]) => h("a", { href: address(page), "aria-current": here ? "page" : null }, text)));

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
    p.classes = [has("dimension", p.dimension) ? "" : "faint", lit ? (share ? "lit" : "unlit") : ""].join(" ");
  }
  // Highlighted points are above the others, and are named first.
  if (lit) points.sort((p, q) => Math.abs(q.value ?? 0) - Math.abs(p.value ?? 0));
  const words = (t) => Math.max(Math.round(most ** t), 1);
  const part = (name) => clamp(Number(given().get(name)) || 0, 0, 1);
  const state = { words: part("words"), accuracy: part("accuracy") };
  const isLit = (p) => !lit || p.value !== undefined;
  const { draw, content } = mapView({
    points, regions, wanted, state, kind: "dimension", key: "dimension",
    many: lit ? 40 : 24, namedRegions: !lit, names: isLit, lists: isLit,
    shows: (p) => (!state.words || p.label.words >= words(state.words)) && (accuracyOf(p.dimension, p.pole) ?? 0) >= state.accuracy,
    card: (p) => [
      h("strong", {}, dimensionLink(p.dimension, `dimension ${p.dimension}`)), ` ${plural(p.label.words, unit())}`,
      p.value !== undefined && `, ${decimal(p.value)} for ${textOf(lit.word).slice(0, 60)}`,
      h("br"), p.words.join(" ")],
    row: (p) => nameLink(p.dimension, p.pole),
    open: (p) => has("dimension", p.dimension) && go("dimension", p.dimension),
    beside: (enter) => !lit && regionsList(regions, enter),
  });
  return {
    title: lit ? `${textOf(lit.word).slice(0, 80)} on the map` : "map",
    content: [
      heading(lit ? [wordLink(lit.word), h("small", {}, " on the map")] : "Map"),
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

/** grey is the colour of the values of a column that have no colour of their own. */
const grey = 7;

/** rowsPage shows the map of rows, centred at a row, with colours by region or by a column: #/rows?colour=label. */
async function rowsPage(word) {
  const [{ points, regions, columns }, found] = await Promise.all([loadRows(), word === undefined ? undefined : ask("word", "word", word)]);
  const wanted = points.find((p) => p.word === found?.word);
  if (found && !wanted) throw new Missing(`The map shows ${whole(points.length)} ${unit()}s, without this one. This is its page:`, [found.word]);
  const small = Math.max(Math.min(Math.sqrt(800 / points.length), 1), 0.5);
  for (const p of points) {
    p.name = visible(textOf(p.word));
    p.radius = 4 * small;
    p.classes = "";
  }
  const legend = h("div", {});
  const state = { colour: given().get("colour") };
  function paint() {
    const column = columns.find((c) => c.name === state.colour);
    state.colour = column?.name;
    for (const r of regions) r.shade = column ? "" : undefined;
    points.forEach((p, i) => {
      const value = column?.of[i];
      p.colour = column ? (value < 0 ? grey : value) : (regions[p.region]?.colour ?? grey);
      p.value = column && (value < 0 ? "another" : column.values[value] === "" ? "–" : visible(column.values[value]));
    });
    const values = column && [...column.values.map((value, i) => [value === "" ? "–" : visible(value), i, i]), ["others", -1, grey]];
    const count = (i) => column.of.filter((of) => of === i).length;
    legend.replaceChildren();
    fill(legend, {}, [column
      ? h("section", {}, h("h2", {}, h("bdi", {}, visible(column.name))), h("ul", { class: "plain" }, values.filter(([, i]) => count(i) > 0).map(([value, i, colour]) =>
        h("li", {}, h("span", { class: `swatch region${colour}` }), h("bdi", {}, value), h("span", { class: "number" }, whole(count(i)))))))
      : regionsList(regions, (r) => show(r), model.themes ? "Topics" : "Regions")]);
  }
  let show;
  paint();
  const { draw, content } = mapView({
    points, regions, wanted, state, kind: unit(), key: "row", many: 24, namedRegions: true,
    shows: () => true, names: (p, zoom) => !model.texts || zoom > 3,
    card: (p) => [h("strong", {}, wordLink(p.word)), p.value && [h("br"), h("bdi", {}, state.colour), ": ", h("bdi", {}, p.value)]],
    row: (p) => wordLink(p.word, { class: "excerpt" }),
    open: (p) => openRow(p, regions),
    beside: (enter) => { show = enter; return legend; },
  });
  const colours = h("select", { onchange: (event) => { state.colour = event.currentTarget.value; paint(); draw(); } },
    h("option", { value: "" }, model.themes ? "topic" : "region"), columns.map((c) => h("option", { value: c.name, selected: c.name === state.colour }, visible(c.name))));
  return {
    title: `map of ${unit()}s`,
    content: [
      heading(`Map of ${unit()}s`),
      h("p", { class: "lead" }, `Each dot is a ${unit()}. ${model.texts ? "Texts" : "Words"} with similar codes are close.`,
        points.length < model.words && ` The map shows ${model.texts ? "a sample of " : "the first "}${whole(points.length)} of ${whole(model.words)}.`),
      h("div", { class: "tools map-tools" },
        mapTabs(true),
        isSearchable() && wordSearch({ label: `Show a ${unit()} on the map`, placeholder: `show a ${unit()}`, choose: (chosen) => go("rows", chosen) }),
        columns.length > 0 && h("label", {}, "Colours by ", colours)),
      content,
    ],
  };
}
