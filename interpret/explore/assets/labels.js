"use strict";

// Names of dimensions and topics, and word intrusion accuracy.

let labels; // the answer of ask("labels")
let named = new Map(); // labels by dimension
let namedTopics = new Map(); // labels by topic

function useLabels(answer) {
  labels = answer;
  named = new Map(answer.labels.filter((label) => "dimension" in label).map((label) => [label.dimension, label]));
  namedTopics = new Map(answer.labels.filter((label) => "topic" in label).map((label) => [label.topic, label]));
}

/** labelWords returns the words of the label of a pole, which the sign of a value selects. */
const labelWords = (k, value) => (value < 0 ? model.dimensions[k].bottom_label : model.dimensions[k].label) ?? [];

/** nameText returns the name of a pole. */
function nameText(k, value = 1) {
  const name = named.get(k)?.name;
  const text = name || labelWords(k, value).join(", ");
  if (text) return (value < 0 ? "−" : "") + visible(text);
  return value > 0 && labelWords(k, -1).length > 0 ? "−" + labelWords(k, -1).join(", ") : "no word";
}

/** name shows nameText, each word with its own direction. */
function name(k, value = 1) {
  const words = labelWords(k, value);
  if (named.get(k)?.name || words.length === 0) return h("bdi", {}, nameText(k, value));
  return words.map((word, i) => [i > 0 ? ", " : value < 0 && "−", h("bdi", {}, word)]);
}

/** strongPole returns the sign of a dimension's stronger pole. */
const strongPole = (k) => (model.dimensions[k].negative ? -1 : 1);

/** accuracyOf returns the word intrusion accuracy of a pole, or undefined if it wasn't measured. */
const accuracyOf = (k, value = 1) => (value < 0 ? model.dimensions[k].bottom_accuracy : model.dimensions[k].accuracy);

/** isMeasured reports whether the accuracy of poles with a sign was measured. */
const isMeasured = (value = 1) => model.dimensions.some((_, k) => accuracyOf(k, value) !== undefined);

/** weakness returns the reason why a pole may be meaningless, or undefined. */
function weakness(k, value = 1) {
  const accuracy = accuracyOf(k, value);
  if (!isMeasured(value)) return undefined;
  if (accuracy === undefined) return "not measured: the test's vectors lack most of the pole's words";
  // By chance, one dimension in thirty reaches 0.5 in ten questions.
  return accuracy < 0.5 ? `weak: word intrusion accuracy ${percent(accuracy)}, chance 20 %` : undefined;
}

/** nameLink shows a dimension's name and number, grey if it is weak, with a link to its page. */
function nameLink(k, value = 1) {
  const why = weakness(k, value);
  const content = [name(k, value), " ", h("span", { class: "number" }, h("span", { class: "sr" }, "dimension "), String(k)), why && h("span", { class: "sr" }, ` (${why})`)];
  const attributes = { class: why ? "name weak" : "name", title: why };
  return has("dimension", k) ? h("a", { ...attributes, href: address("dimension", k) }, content) : h("span", attributes, content);
}

/** dimensionText shows a dimension's name, and its top words except the words of the name. */
function dimensionText(k, value = 1, own = []) {
  const inName = named.get(k)?.name ? [] : labelWords(k, value);
  const rest = ends(k, value).filter((word) => !inName.includes(word));
  return h("span", { class: "what" }, nameLink(k, value), " ", model.texts ? keywordList(rest, { tabindex: -1 }) : wordList(rest, own, { tabindex: -1 }));
}

/** weakNote explains grey names, if a dimension of the rows has one. */
function weakNote(rows) {
  if (!rows.some(({ dimension, value = 1 }) => weakness(dimension, value))) return null;
  return h("p", { class: "note" }, `Grey: dimensions whose word intrusion accuracy, judged by ${model.judge || "other vectors"}, is below 50 % or was not measured.`);
}

/** topicName returns the name of a topic. */
const topicName = (topic) => visible(namedTopics.get(topic.id)?.name || topic.label);

/** proposal marks a topic whose label a program proposed. */
const proposal = (topic) => namedTopics.get(topic.id)?.proposed && h("span", { class: "note" }, " proposed label");

/** labelEditor shows the note of a dimension or topic and, if labels are writable, a form to change the label. */
function labelEditor(kind, id, placeholder, changed) {
  const { name: given = "", note = "" } = (kind === "topic" ? namedTopics : named).get(id) ?? {};
  const shown = h("div", { class: "label" },
    note && h("p", { class: "label-note" }, h("bdi", {}, note)));
  if (!labels.writable) return shown;
  const field = h("input", { type: "text", value: given, maxlength: 100, autocomplete: "off", placeholder });
  const more = h("input", { type: "text", value: note, maxlength: 2000, autocomplete: "off" });
  const error = h("p", { role: "alert", class: "note" });
  const form = h("form", { class: "editor", hidden: true },
    h("label", {}, "Label ", field), h("label", {}, "Note ", more),
    h("span", {}, h("button", { type: "submit" }, "Save"), " ", h("button", { type: "button", onclick: () => toggle(false) }, "Cancel")), error);
  const open = h("button", { type: "button", class: "edit", onclick: () => toggle(true) }, given || note ? "Change label" : "Add label");
  function toggle(editing) {
    form.hidden = !editing;
    open.hidden = editing;
    (editing ? field : open).focus();
    if (editing) field.select();
  }
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      useLabels(await send("labels", { [kind]: id, name: field.value, note: more.value }));
    } catch (e) {
      error.textContent = e.message;
      return;
    }
    changed();
  });
  shown.append(open, form);
  return shown;
}

/** stopWordsEditor shows a form to change the words that labels leave out, if labels are writable. */
function stopWordsEditor() {
  if (!labels.writable || !model.texts) return null;
  const field = h("textarea", { rows: 5, spellcheck: "false" }, labels.stop_words.join("\n"));
  const error = h("p", { role: "alert", class: "note" });
  const form = h("form", { class: "editor" },
    h("label", {}, "One word on each line ", field), h("span", {}, h("button", { type: "submit" }, "Save")), error);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      await send("labels", { stop_words: field.value.split("\n"), replaces: labels.stop_words });
    } catch (e) {
      error.textContent = e.message;
      return;
    }
    location.reload(); // all labels may have changed
  });
  return h("details", { class: "stop" }, h("summary", {}, `Words that labels leave out (${whole(labels.stop_words.length)})`), form);
}

/** dimensionsPage lists all dimensions, with a filter and several orders. */
async function dimensionsPage() {
  const measured = isMeasured();
  const rank = new Map(model.strongest.map((k, i) => [k, i]));
  // The list shows the stronger pole of each dimension.
  const all = model.dimensions.map((d, k) => ({ k, ...d, accuracy: accuracyOf(k, strongPole(k)) })).filter((d) => d.words > 0 && has("dimension", d.k));
  const orders = {
    ...(measured && { "highest word intrusion accuracy first": (a, b) => (b.accuracy ?? -1) - (a.accuracy ?? -1) || rank.get(a.k) - rank.get(b.k) }),
    "most coherent first": (a, b) => (b.coherence ?? -1) - (a.coherence ?? -1) || rank.get(a.k) - rank.get(b.k),
    "strongest first": (a, b) => rank.get(a.k) - rank.get(b.k),
    [`most ${unit()}s first`]: (a, b) => b.words - a.words,
    [`fewest ${unit()}s first`]: (a, b) => a.words - b.words,
    "by label": (a, b) => nameText(a.k, strongPole(a.k)).localeCompare(nameText(b.k, strongPole(b.k))),
    "by number": () => 0,
    "labelled first": (a, b) => Boolean(named.get(b.k)?.name) - Boolean(named.get(a.k)?.name),
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
    const rows = all.filter((d) => (!wanted || text(d).includes(wanted)) && (from === 0 || (d.accuracy ?? 0) >= from - 1e-9)).sort(orders[order.value]);
    count.textContent = `${whole(rows.length)} of ${plural(all.length, "dimension")}` + (rows.length === 0 ? ": relax the filters." : "");
    list.replaceChildren(...h("div", {}, rows.length > 0 && folded(rows, 60, (some) =>
      h("ul", { class: measured ? "bars dims scored" : "bars dims unscored" }, some.map((d) =>
        h("li", {}, measured && (d.accuracy === undefined ? h("span", {}) : bar(d.accuracy, 0, 1, { mark: 0.2 })), measured && h("span", { class: "value" }, d.accuracy === undefined ? "–" : percent(d.accuracy)),
          h("span", { class: "value" }, plural(d.words, unit())), dimensionText(d.k, strongPole(d.k))))))).childNodes);
  }
  draw();
  return {
    title: "dimensions",
    content: [
      heading("Dimensions"),
      h("p", { class: "lead" }, `The top ${unit()}s of a dimension show its meaning. `, measured
        ? `The bar shows its word intrusion accuracy: how often ${model.judge || "other vectors"} found an unrelated word hidden among its top words. The line marks chance.${all.some((d) => strongPole(d.k) < 0) && !isMeasured(-1) ? " Negative poles, marked by a minus, were not measured." : ""}`
        : embedded ? null : `The most coherent dimensions come first: without the dimension itself, the codes of its strongest ${unit()}s are similar. Word intrusion accuracy is more reliable; overcomplete intrusion auto --save measures it.`),
      h("div", { class: "filters" }, filter, order, measured && h("label", {}, "accuracy at least ", least, " ", leastText)),
      count,
      list,
    ],
  };
}
