"use strict";

// What dimensions are called, and how far they can be trusted.

let labels; // what ask("labels") answers
let named = new Map(); // the labels that people gave, by dimension

function useLabels(answer) {
  labels = answer;
  named = new Map(answer.labels.map((label) => [label.dimension, label]));
}

/** labelWords are the words that stand for a dimension on a value's side of zero. */
const labelWords = (k, value) => (value < 0 ? model.dimensions[k].bottom_label : model.dimensions[k].label) ?? [];

/** nameText is what that side is called. */
function nameText(k, value = 1) {
  const name = named.get(k)?.name;
  const text = name || labelWords(k, value).join(", ");
  if (text) return (value < 0 ? "−" : "") + text;
  return value > 0 && labelWords(k, -1).length > 0 ? "−" + labelWords(k, -1).join(", ") : "no word";
}

/** name is nameText with each word isolated, whichever way it is written. */
function name(k, value = 1) {
  const words = labelWords(k, value);
  if (named.get(k)?.name || words.length === 0) return h("bdi", {}, nameText(k, value));
  return words.map((word, i) => [i > 0 ? ", " : value < 0 && "−", h("bdi", {}, word)]);
}

/** strongSide is the sign of a dimension's larger values. */
const strongSide = (k) => (model.dimensions[k].negative ? -1 : 1);

/** coherenceOf is the coherence of a dimension's side, undefined without. */
const coherenceOf = (k, value = 1) => (value < 0 ? model.dimensions[k].bottom_coherence : model.dimensions[k].coherence);

/** isScored reports whether the dimensions' sides of that sign have scores. Negative ones may have none beside positive ones. */
const isScored = (value = 1) => model.dimensions.some((_, k) => coherenceOf(k, value) !== undefined);

/** weakness says why a side of a dimension should not be trusted; it is undefined if nothing says so. */
function weakness(k, value = 1) {
  const coherence = coherenceOf(k, value);
  if (!isScored(value)) return undefined;
  if (coherence === undefined) return "not scored: too few of its words are known to the vectors that were asked";
  // By guessing, one dimension in thirty has half of ten questions right.
  return coherence < 0.5 ? `weak: an intruder among its top words is found in ${percent(coherence)} of questions, by guessing in 20 %` : undefined;
}

/** nameLink is a dimension's name and number, grey if it is weak, and leads to its page. */
function nameLink(k, value = 1) {
  const why = weakness(k, value);
  const content = [name(k, value), " ", h("span", { class: "number" }, h("span", { class: "sr" }, "dimension "), String(k)), why && h("span", { class: "sr" }, ` (${why})`)];
  const attributes = { class: why ? "name weak" : "name", title: why };
  return has("dimension", k) ? h("a", { ...attributes, href: address("dimension", k) }, content) : h("span", attributes, content);
}

/** dimensionText is a dimension's name, and the top words that are not in it. */
function dimensionText(k, value = 1, own = []) {
  const inName = named.get(k)?.name ? [] : labelWords(k, value);
  const rest = ends(k, value).filter((word) => !inName.includes(word));
  return h("span", { class: "what" }, nameLink(k, value), " ", model.texts ? keywordList(rest, { tabindex: -1 }) : wordList(rest, own, { tabindex: -1 }));
}

/** weakNote explains what is grey, if some of the dimensions, with values, are. */
function weakNote(rows) {
  if (!rows.some(({ dimension, value = 1 }) => weakness(dimension, value))) return null;
  return h("p", { class: "note" }, `Grey names are of weak dimensions: of ten questions which of five words does not belong to their top words, ${model.judge || "other vectors"} answered fewer than five right.`);
}

/** labelEditor shows a dimension's note and, where labels can be changed, a form to do so. */
function labelEditor(k, changed) {
  const { name: given = "", note = "" } = named.get(k) ?? {};
  const shown = h("div", { class: "label" },
    note && h("p", { class: "label-note" }, h("bdi", {}, note)));
  if (!labels.writable) return shown;
  const field = h("input", { type: "text", value: given, maxlength: 100, autocomplete: "off", placeholder: labelWords(k, 1).join(", ") });
  const more = h("input", { type: "text", value: note, maxlength: 2000, autocomplete: "off" });
  const error = h("p", { role: "alert", class: "note" });
  const form = h("form", { class: "editor", hidden: true },
    h("label", {}, "Label ", field), h("label", {}, "Note ", more),
    h("span", {}, h("button", { type: "submit" }, "Save"), " ", h("button", { type: "button", onclick: () => toggle(false) }, "Cancel")), error);
  const open = h("button", { type: "button", class: "edit", onclick: () => toggle(true) }, given || note ? "Change label" : "Give it a label");
  function toggle(editing) {
    form.hidden = !editing;
    open.hidden = editing;
    (editing ? field : open).focus();
    if (editing) field.select();
  }
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      useLabels(await send("labels", { dimension: k, name: field.value, note: more.value }));
    } catch (e) {
      error.textContent = e.message;
      return;
    }
    changed();
  });
  shown.append(open, form);
  return shown;
}

/** dimensionsPage is all dimensions, to be filtered and sorted. */
async function dimensionsPage() {
  const scored = isScored();
  const rank = new Map(model.strongest.map((k, i) => [k, i]));
  // Of each, the stronger side is shown.
  const all = model.dimensions.map((d, k) => ({ k, ...d, coherence: coherenceOf(k, strongSide(k)) })).filter((d) => d.words > 0 && has("dimension", d.k));
  const orders = {
    ...(scored && { "most coherent first": (a, b) => (b.coherence ?? -1) - (a.coherence ?? -1) || rank.get(a.k) - rank.get(b.k) }),
    [`most alike ${unit()}s first`]: (a, b) => (b.likeness ?? -1) - (a.likeness ?? -1) || rank.get(a.k) - rank.get(b.k),
    "strongest first": (a, b) => rank.get(a.k) - rank.get(b.k),
    [`most ${unit()}s first`]: (a, b) => b.words - a.words,
    [`fewest ${unit()}s first`]: (a, b) => a.words - b.words,
    "by label": (a, b) => nameText(a.k, strongSide(a.k)).localeCompare(nameText(b.k, strongSide(b.k))),
    "by number": () => 0,
    "labelled by people first": (a, b) => Boolean(named.get(b.k)?.name) - Boolean(named.get(a.k)?.name),
  };
  const filter = h("input", { type: "search", "aria-label": "Filter dimensions by label or words", placeholder: "filter by label or word", oninput: () => draw() });
  const order = h("select", { "aria-label": "Order", onchange: () => draw() }, Object.keys(orders).map((o) => h("option", {}, o)));
  const least = h("input", { type: "range", min: 0, max: 10, value: 0, oninput: () => draw() });
  const leastText = h("output", {});
  const count = h("p", { class: "note", role: "status" });
  const list = h("div", {});
  const text = (d) => [nameText(d.k), named.get(d.k)?.note ?? "", ...d.label, ...d.top, ...(d.bottom_label ?? []), ...(d.bottom ?? []), String(d.k)].join(" ").toLowerCase();
  function draw() {
    const wanted = filter.value.trim().toLowerCase();
    const from = Number(least.value) / 10;
    leastText.textContent = percent(from);
    const rows = all.filter((d) => (!wanted || text(d).includes(wanted)) && (from === 0 || (d.coherence ?? 0) >= from - 1e-9)).sort(orders[order.value]);
    count.textContent = `${whole(rows.length)} of ${plural(all.length, "dimension")}` + (rows.length === 0 ? ": try less of a filter." : "");
    list.replaceChildren(...h("div", {}, rows.length > 0 && folded(rows, 60, (some) =>
      h("ul", { class: scored ? "bars dims scored" : "bars dims unscored" }, some.map((d) =>
        h("li", {}, scored && (d.coherence === undefined ? h("span", {}) : bar(d.coherence, 0, 1, { mark: 0.2 })), scored && h("span", { class: "value" }, d.coherence === undefined ? "–" : percent(d.coherence)),
          h("span", { class: "value" }, plural(d.words, unit())), dimensionText(d.k, strongSide(d.k))))))).childNodes);
  }
  draw();
  return {
    title: "dimensions",
    content: [
      heading("Dimensions"),
      h("p", { class: "lead" }, `A dimension means what its top ${unit()}s have in common. `, scored
        ? `The bar is its coherence: how often ${model.judge || "other vectors"} found the word that does not belong to them. The line is guessing.${all.some((d) => strongSide(d.k) < 0) && !isScored(-1) ? " Negative sides, which have a minus, were not scored." : ""}`
        : embedded ? null : `How coherent they are is not known yet: overcomplete intrusion auto --save finds out. Until then those come first whose strongest ${unit()}s are most alike in other dimensions.`),
      h("div", { class: "filters" }, filter, order, scored && h("label", {}, "coherence from ", least, " ", leastText)),
      count,
      list,
    ],
  };
}
