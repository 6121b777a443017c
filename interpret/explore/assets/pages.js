"use strict";

// The pages. Each function receives the parts of the address, and returns a title and content.

let model; // the answer of ask("model")

/** ends returns the top words of a pole, which the sign of a value selects. */
const ends = (k, value) => (value < 0 ? model.dimensions[k].bottom : model.dimensions[k].top) ?? [];

const heading = (text, ...more) => h("h1", { tabindex: -1 }, text, ...more);

function figure(title, ...content) {
  return h("figure", {}, h("figcaption", {}, title), ...content);
}

function facts(pairs) {
  return h("dl", { class: "facts" }, pairs.filter(Boolean).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

/** folded shows the first rows of a list, and a button that shows all. */
function folded(rows, most, build) {
  const list = build(rows.slice(0, most));
  if (rows.length <= most) return list;
  const more = h("button", { type: "button", class: "more" }, `Show all ${whole(rows.length)}`);
  more.addEventListener("click", () => {
    const all = build(rows);
    list.replaceWith(all);
    more.remove();
    all.querySelectorAll("a")[list.querySelectorAll("a").length]?.focus();
  });
  return [list, more];
}

async function summaryPage() {
  if (model.themes) return topicsPage();
  const cards = h("ul", { class: "cards" }, model.strongest.slice(0, 12).map((k) => {
    const pole = strongPole(k), why = weakness(k, pole);
    const more = ends(k, pole).filter((word) => named.get(k)?.name || !labelWords(k, pole).includes(word));
    return h("li", {}, h("a", { href: address("dimension", k), class: why && "weak", title: why }, h("b", {}, name(k, pole)), " ", h("span", { class: "number" }, String(k)), h("br"), wordsText(more)));
  }));
  return {
    title: "",
    content: [
      heading(model.name),
      h("p", { class: "lead" }, `${plural(model.words, unit())} in ${whole(model.dimensions.length)} sparse dimensions.`, embedded && [" This page shows some of them: ", wordList(embeddedWords())]),
      embedded ? cards : h("div", { class: "reading" },
        h("section", {}, h("h2", {}, "Strongest dimensions"), cards, h("p", {}, h("a", { href: address("dimensions") }, "All dimensions"))),
        h("section", { class: "aside" }, rowsMap(), queryExamples())),
      modelSection(),
    ],
  };
}

/** queryExamples shows queries with words of the model. */
function queryExamples() {
  const [a, b] = model.strongest.slice(0, 2).map((k) => ends(k, strongPole(k))[0]);
  if (model.texts || !b) return null;
  const example = (query, note) => h("li", {}, h("a", { href: address("query", query) }, h("bdi", {}, query)), h("span", { class: "note" }, note));
  return [h("h2", {}, "Example queries"), h("ul", { class: "plain" },
    example(a, "a word"), example(`${a} ${b}`, "a comparison of two words"), model.analogy && example(model.analogy, "the words nearest to a sum"))];
}

/** modelSection shows settings and metrics of the model. */
function modelSection() {
  const { dense, dimensions, words } = model;
  return [
    stopWordsEditor(),
    h("h2", {}, "The model"),
    facts([
      ["input vectors", model.input || "unknown"],
      ["dense dimensions", whole(dense)],
      ["method", `${model.method}, λ = ${decimal(model.lambda)}`],
      ["epochs", whole(model.epochs)],
      ["sparsity", words ? percent(1 - model.nonzeros / words / dimensions.length) : "none"],
      [`nonzeros per ${unit()} (L0)`, words ? decimal(model.nonzeros / words) : "none"],
      ["dead atoms", whole(dimensions.length - model.live)],
      model.error !== undefined && ["reconstruction error, mean ‖x − x̂‖²", decimal(model.error)],
      model.explained !== undefined && ["explained variance", percent(model.explained)],
    ]),
    h(
      "div",
      { class: "halves" },
      figure(`${model.texts ? "Texts" : "Words"} by number of nonzeros`, histogram(model.per_word, { unit: unit(), label: `Nonzeros per ${unit()}`, whole: true })),
      figure(`Dimensions by number of ${unit()}s`, histogram(model.per_dimension, { unit: "dimension", label: `${model.texts ? "Texts" : "Words"} per dimension`, whole: true })),
    ),
  ];
}

async function wordPage(word) {
  const answer = await ask("word", "word", word);
  if (model.texts) return textPage(answer);
  const values = answer.active.map((w) => w.value);
  const [low, high] = [Math.min(0, ...values), Math.max(0, ...values)];
  const format = column(values);
  const dimensions = (all) => folded(all, 20, (rows) => h("ul", { class: "bars dims" }, rows.map(({ dimension, value }) =>
    h("li", {}, bar(value, low, high), h("span", { class: "value" }, format(value)), h("span", {}, dimensionText(dimension, value, [answer.word]), !/\s/.test(answer.word) && withoutLink(answer.word, dimension))))));
  // Words of the weaker pole of a dimension have less in common.
  const isStrong = ({ dimension, value }) => value < 0 === strongPole(dimension) < 0;
  const strong = answer.active.filter(isStrong), weaker = answer.active.filter((w) => !isStrong(w));
  return {
    title: answer.word,
    content: [
      heading(answer.word),
      h("p", { class: "lead" }, `Word ${whole(answer.row + 1)} of ${whole(model.words)}, with ${whole(answer.active.length)} of ${plural(model.dimensions.length, "dimension")} active.`),
      h(
        "div",
        { class: "columns" },
        h(
          "section",
          {},
          h("h2", {}, "Dimensions"),
          dimensions(strong),
          weaker.length > 0 && h("details", { class: "stop" }, h("summary", {}, `${plural(weaker.length, "dimension")} at the weaker pole`), dimensions(weaker)),
          weakNote(answer.active),
        ),
        h(
          "section",
          {},
          h("h2", {}, "Compare with"),
          wordSearch({ label: `Compare ${answer.word} with`, placeholder: "another word", choose: (other) => go("compare", answer.word, other) }),
          h("h2", {}, "Nearest words"),
          steering(answer.word, answer.active, h(
            "ol",
            { class: "bars nearest" },
            answer.nearest.map((n) =>
              h(
                "li",
                {},
                wordLink(n.word),
                bar(n.cosine, 0, 1),
                h("span", { class: "value" }, n.cosine.toFixed(2)),
                hasCode("word", n.word) && h("a", { class: "compare", href: address("compare", answer.word, n.word), "aria-label": `compare with ${n.word}`, title: "compare" }, "⇄"),
              ),
            ),
          )),
          answer.nearest.length === 0 && h("p", {}, "No other word uses these dimensions."),
        ),
      ),
    ],
  };
}

async function dimensionPage(number) {
  const answer = await ask("dimension", "dimension", number);
  const k = answer.dimension;
  // In order of strength, because numbers are arbitrary.
  const at = model.strongest.indexOf(k);
  const others = [at - 1, at + 1].map((i) => (at >= 0 && i in model.strongest ? address("dimension", model.strongest[i]) : null));
  const share = answer.words / model.words;
  const widest = Math.max(...answer.together.map((other) => Math.max(other.words, other.expected)));
  const most = Math.max(...[...answer.top, ...answer.bottom].map((e) => Math.abs(e.value)));
  /** list shows the rows of a pole, in one of several orders. */
  const list = (title, pole, orders) => {
    const [[, strongest]] = orders;
    const format = column([most]);
    const shown = h("div", {});
    const same = (entries) => entries.length === strongest.length && entries.every((e, i) => e.word === strongest[i].word);
    const buttons = orders.filter(([, entries], i) => entries && (i === 0 || !same(entries))).map(([text, entries, note]) =>
      h("button", { type: "button", title: note, onclick: (event) => draw(event.currentTarget, entries) }, text));
    const value = (e) => [bar(Math.abs(e.value), 0, most, { colour: e.value < 0 ? "negative" : "positive" }), h("span", { class: "value" }, format(e.value))];
    function draw(pressed, entries) {
      for (const button of buttons) button.setAttribute("aria-pressed", String(button === pressed));
      shown.replaceChildren(...h("div", {}, model.texts
        ? folded(entries, 8, (rows) => h("ol", { class: "excerpts" }, rows.map((e) => textItem(e.word, answer.texts?.[e.word], ends(k, pole), value(e)))))
        : folded(entries, 12, (rows) => h("ol", { class: "bars values" }, rows.map((e) => h("li", {}, wordLink(e.word), value(e)))))).childNodes);
    }
    draw(buttons[0], strongest);
    const order = buttons.length > 1 && h("div", { class: "toggle", role: "group", "aria-label": `Order of ${title.toLowerCase()}` }, buttons);
    if (pole === strongPole(k)) return [h("h2", {}, title), order, shown];
    return h("details", { class: "stop" }, h("summary", {}, title, ", at the weaker pole"), order, shown);
  };
  const { coherence } = model.dimensions[k];
  const poles = [strongPole(k), -strongPole(k)].filter((pole) => ends(k, pole).length > 0);
  /** accuracyNote shows the word intrusion accuracy of a pole, if it was measured. */
  const accuracyNote = (pole) => {
    const accuracy = accuracyOf(k, pole), why = weakness(k, pole);
    return [
      accuracy !== undefined && h("p", { class: "note" }, h("b", {}, `word intrusion accuracy ${percent(accuracy)}`), `: how often ${model.judge || "other vectors"} found an unrelated word hidden among its ${pole < 0 ? "most negative" : "top"} words. Chance is 20 %.`),
      why && h("p", { class: "note" }, accuracy === undefined ? `Word intrusion accuracy ${why}.` : "This pole is weak: its words may be unrelated."),
    ];
  };
  const together = (rows) => h("ul", { class: model.texts ? "bars parts" : "bars dims" }, rows.map((other) => {
    const drawn = bar(other.words, 0, widest, { mark: other.expected, colour: other.opposite ? "negative" : "positive" });
    const value = h("span", { class: "value", title: `${percent(other.expected / answer.words)} by chance` }, percent(other.words / answer.words));
    const pole = other.opposite ? -1 : 1;
    return h("li", {}, model.texts ? [nameLink(other.dimension, pole), drawn, value] : [drawn, value, dimensionText(other.dimension, pole)]);
  }));
  const numbers = () => h("section", { class: "aside" },
    figure(`${plural(answer.words, unit())} (${percent(share)}) by value; variance ${decimal(answer.variance)}`, histogram(answer.histogram, { unit: unit(), label: `Values of the ${unit()}s` })),
    h("h2", {}, "Co-occurring dimensions"),
    answer.together.length === 0
      ? h("p", {}, "No dimension co-occurs with this one more often than by chance.")
      : [folded(answer.together, 8, together),
        h("p", { class: "note" }, `The bar shows the share of this dimension's ${unit()}s that are at the same pole of the other dimension. The line marks chance. The largest correlation comes first.`, answer.together.some((other) => other.opposite) && ` Orange: the share at opposite poles.`)]);
  const distinctive = `${unit()}s with few other dimensions come first`;
  const lists = () => {
    const both = [
      answer.top.length > 0 && list(`Top ${unit()}s`, 1, [["largest values", answer.top], ["most distinctive", answer.distinctive, distinctive], ["middle values", answer.middle], ["smallest values", answer.weak]]),
      answer.bottom.length > 0 && list(`Most negative ${unit()}s`, -1, [["largest values", answer.bottom], ["most distinctive", answer.distinctive_bottom, distinctive]])];
    return h("section", {}, strongPole(k) < 0 ? both.reverse() : both); // the stronger pole first
  };
  return {
    title: answer.words > 0 ? `${nameText(k, poles[0])}, dimension ${k}` : `dimension ${k}`,
    content: [
      h("nav", { class: "steps", "aria-label": "Dimensions" }, h("a", { href: others[0], rel: "prev" }, "← stronger"), h("a", { href: address("map", k) }, "on the map"), h("a", { href: others[1], rel: "next" }, "weaker →")),
      h("h1", { tabindex: -1, class: "eyebrow" }, "dimension ", String(k)),
      answer.words > 0 && h("p", { class: weakness(k, poles[0]) ? "title weak" : "title" }, name(k, poles[0])),
      !isMeasured() && coherence !== undefined && h("p", { class: "note" }, h("b", {}, `coherence ${signed(coherence, 2)}`), `: the mean cosine of the codes of its eight strongest ${unit()}s, without this dimension, minus the mean cosine of any two ${unit()}s. Chance is 0.`),
      accuracyNote(poles[0]),
      poles.length > 1 && h("p", { class: weakness(k, poles[1]) ? "lead weak" : "lead" }, `Weaker pole (${poles[1] < 0 ? "negative" : "positive"}): `, name(k, poles[1])),
      poles.length > 1 && accuracyNote(poles[1]),
      labelEditor("dimension", k, labelWords(k, 1).join(", "), show),
      answer.words === 0
        ? h("p", {}, `No ${unit()} uses this dimension.`)
        : h("div", { class: model.texts ? "reading" : "columns" }, model.texts ? [lists(), numbers()] : [numbers(), lists()]),
    ],
  };
}

function missingPage(error) {
  return {
    title: "not found",
    content: [
      heading("Not found"),
      h("p", { class: "lead message" }, error.message),
      error.closest.length > 0 && [h("h2", {}, embedded ? "Words of this page" : "Did you mean"), h("p", { class: "suggestions" }, error.closest.map((word) => [h("a", { href: error.instead?.(word) ?? address("word", word) }, textOf(word)), " "]))],
    ],
  };
}
