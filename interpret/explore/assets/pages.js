"use strict";

// The pages: each function returns a title and content, from the parts of the
// page's address.

let model; // what ask("model") answers

/** ends are the words that stand for a dimension on a value's side of zero. */
const ends = (k, value) => (value < 0 ? model.dimensions[k].bottom : model.dimensions[k].top) ?? [];

const heading = (text, ...more) => h("h1", { tabindex: -1 }, text, ...more);

function figure(title, ...content) {
  return h("figure", {}, h("figcaption", {}, title), ...content);
}

function facts(pairs) {
  return h("dl", { class: "facts" }, pairs.filter(Boolean).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

/** folded shows some rows of a list, and the rest when asked for. */
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
  const { dense, dimensions, words } = model;
  return {
    title: "",
    content: [
      heading(model.name),
      h("p", { class: "lead" }, `${plural(words, "word")} in ${whole(dimensions.length)} sparse dimensions. Search for a word, wander on the `, h("a", { href: "#/map" }, "map"), ", or begin with one of these dimensions."),
      embedded && h("p", { class: "lead" }, "This page has some of them: ", wordList(embeddedWords())),
      h(
        "ul",
        { class: "cards" },
        model.strongest.map((k) => h("li", {}, h("a", { href: has("dimension", k) ? address("dimension", k) : null }, h("span", { class: "number" }, String(k)), " ", wordsText(model.dimensions[k].top.slice(0, 6))))),
      ),
      h("h2", {}, "The model"),
      facts([
        ["made from", model.input || "unknown"],
        ["dense dimensions", whole(dense)],
        ["method", `${model.method}, λ = ${decimal(model.lambda)}`],
        ["epochs", whole(model.epochs)],
        ["zeros", words ? percent(1 - model.nonzeros / words / dimensions.length) : "none"],
        ["active dimensions a word", words ? decimal(model.nonzeros / words) : "none"],
        ["unused dimensions", whole(dimensions.length - model.live)],
        model.error !== undefined && ["error of a word", decimal(model.error)],
      ]),
      h(
        "div",
        { class: "halves" },
        figure("Words by their number of active dimensions", histogram(model.per_word, { unit: "word", label: "Active dimensions of a word", whole: true })),
        figure("Dimensions by the number of their words", histogram(model.per_dimension, { unit: "dimension", label: "Words of a dimension", whole: true })),
      ),
    ],
  };
}

async function wordPage(word) {
  const answer = await ask("word", "word", word);
  const values = answer.active.map((w) => w.value);
  const [low, high] = [Math.min(0, ...values), Math.max(0, ...values)];
  const format = column(values);
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
          h("h2", {}, "Its dimensions"),
          folded(answer.active, 20, (rows) =>
            h(
              "ul",
              { class: "bars" },
              rows.map(({ dimension, value }) =>
                h("li", {}, dimensionLink(dimension, h("span", { class: "sr" }, "dimension "), String(dimension)), bar(value, low, high), h("span", { class: "value" }, format(value)), wordList(ends(dimension, value), [answer.word])),
              ),
            ),
          ),
        ),
        h(
          "section",
          {},
          h("h2", {}, "Compare with"),
          wordSearch({ label: `Compare ${answer.word} with`, placeholder: "another word", choose: (other) => go("compare", answer.word, other) }),
          h("h2", {}, "Nearest words"),
          h(
            "ol",
            { class: "bars nearest" },
            answer.nearest.map((n) =>
              h(
                "li",
                {},
                wordLink(n.word),
                bar(n.cosine, 0, 1),
                h("span", { class: "value" }, n.cosine.toFixed(2)),
                has("word", n.word) && h("a", { class: "compare", href: address("compare", answer.word, n.word), "aria-label": `compare with ${n.word}`, title: "compare" }, "⇄"),
              ),
            ),
          ),
          answer.nearest.length === 0 && h("p", {}, "No word shares a dimension with it."),
        ),
      ),
    ],
  };
}

async function dimensionPage(number) {
  const answer = await ask("dimension", "dimension", number);
  const k = answer.dimension;
  const others = [k - 1, k + 1].map((other) => (other >= 0 && other < model.dimensions.length && has("dimension", other) ? address("dimension", other) : null));
  const share = answer.words / model.words;
  const widest = Math.max(...answer.together.map((other) => Math.max(other.words, other.expected)));
  const words = (title, entries) => {
    const most = Math.max(...entries.map((e) => Math.abs(e.value)));
    const format = column([most]);
    return [
      h("h2", {}, title),
      folded(entries, 20, (rows) =>
        h("ol", { class: "bars values" }, rows.map((e) => h("li", {}, wordLink(e.word), bar(Math.abs(e.value), 0, most, { colour: e.value < 0 ? "negative" : "positive" }), h("span", { class: "value" }, format(e.value))))),
      ),
    ];
  };
  return {
    title: `dimension ${k}`,
    content: [
      h("nav", { class: "steps", "aria-label": "Dimensions" }, h("a", { href: others[0], rel: "prev" }, "← previous"), h("a", { href: address("map", k) }, "on the map"), h("a", { href: others[1], rel: "next" }, "next →")),
      heading(h("small", {}, "dimension "), String(k)),
      h("p", { class: "lead words" }, wordsText(ends(k, 1).slice(0, 6))),
      answer.words === 0
        ? h("p", {}, "No word uses this dimension.")
        : h(
            "div",
            { class: "columns" },
            h(
              "section",
              {},
              figure(`${plural(answer.words, "word")}, ${percent(share)} of all, by their value; variance ${decimal(answer.variance)}`, histogram(answer.histogram, { unit: "word", label: "Values of the words" })),
              h("h2", {}, "Fires together with"),
              answer.together.length === 0
                ? h("p", {}, "No other dimension more often than by chance.")
                : h(
                    "ul",
                    { class: "bars" },
                    answer.together.map((other) =>
                      h(
                        "li",
                        {},
                        dimensionLink(other.dimension, h("span", { class: "sr" }, "dimension "), String(other.dimension)),
                        bar(other.words, 0, widest, { mark: other.expected, colour: other.opposite ? "negative" : "positive" }),
                        h("span", { class: "value", title: `${percent(other.expected / answer.words)} by chance` }, percent(other.words / answer.words)),
                        wordList(ends(other.dimension, other.opposite ? -1 : 1)),
                      ),
                    ),
                  ),
              answer.together.length > 0 && h("p", { class: "note" }, "How many of this dimension's words are in the other, too; the line is how many would be by chance. The largest correlation comes first.", answer.together.some((other) => other.opposite) && " In orange: it is the negative words that fire with this one's top words."),
            ),
            h("section", {}, answer.top.length > 0 && words("Top words", answer.top), answer.bottom.length > 0 && words("Most negative words", answer.bottom)),
          ),
    ],
  };
}

// The dimensions of words to compare, in groups by who has them. The two sides
// of a dimension are different things to have.
function sharedDimensions(answers) {
  const rows = new Map();
  answers.forEach(({ active }, i) => {
    for (const { dimension, value } of active) {
      const key = dimension + (value < 0 ? "-" : "+");
      if (!rows.has(key)) rows.set(key, { dimension, values: answers.map(() => 0) });
      rows.get(key).values[i] = value;
    }
  });
  const groups = new Map();
  for (const row of rows.values()) {
    const who = row.values.map((v) => (v === 0 ? 0 : 1)).join("");
    if (!groups.has(who)) groups.set(who, []);
    groups.get(who).push(row);
  }
  // What is strong in all that have it comes first.
  const strength = (row) => Math.min(...row.values.filter((v) => v !== 0).map(Math.abs));
  for (const group of groups.values()) group.sort((a, b) => strength(b) - strength(a));
  return groups;
}

function cosine(a, b) {
  const values = new Map(a.active.map((w) => [w.dimension, w.value]));
  const norm = (x) => Math.hypot(...x.active.map((w) => w.value));
  const product = b.active.reduce((sum, w) => sum + w.value * (values.get(w.dimension) ?? 0), 0);
  return product / (norm(a) * norm(b) || 1);
}

async function comparePage(...words) {
  const all = await Promise.all(words.map((word) => ask("word", "word", word)));
  const names = [...new Set(all.map((answer) => answer.word))]; // a word is not compared with itself
  if (names.length === 1) return wordPage(names[0]);
  const answers = names.map((name) => all.find((answer) => answer.word === name));
  const values = answers.flatMap((answer) => answer.active.map((w) => w.value));
  const [low, high] = [Math.min(0, ...values), Math.max(0, ...values)];
  const format = column(values);
  const groups = sharedDimensions(answers);
  const colours = ["first", "second", "third"];
  const pairs = names.flatMap((a, i) => names.slice(i + 1).map((b, j) => [`${a}, ${b}`, cosine(answers[i], answers[i + 1 + j]).toFixed(2)]));
  const group = (who) => {
    const rows = groups.get(who) ?? [];
    const those = names.filter((_, i) => who[i] === "1");
    const title = those.length === names.length ? (names.length > 2 ? "All share" : "Both share") : those.length > 1 ? `${those.join(" and ")} share` : `Only ${those[0]} has`;
    return h(
      "section",
      {},
      h("h2", {}, title, h("small", {}, ` ${plural(rows.length, "dimension")}`)),
      folded(rows, 10, (some) =>
        h(
          "ul",
          { class: "bars" },
          some.map(({ dimension, values }) =>
            h(
              "li",
              {},
              dimensionLink(dimension, h("span", { class: "sr" }, "dimension "), String(dimension)),
              h("span", { class: "group" }, values.map((v, i) => v !== 0 && bar(v, low, high, { colour: colours[i] }))),
              h("span", { class: "value", title: names.map((name, i) => `${name} ${decimal(values[i])}`).join(", ") }, values.filter((v) => v !== 0).map((v) => h("span", {}, format(v)))),
              wordList(ends(dimension, Math.min(...values)), names),
            ),
          ),
        ),
      ),
    );
  };
  const patterns = names.length === 2 ? ["11", "10", "01"] : ["111", "110", "101", "011", "100", "010", "001"];
  return {
    title: names.join(", "),
    content: [
      heading(names.map((name, i) => [i > 0 && h("span", { class: "versus" }, " and "), wordLink(name, { class: colours[i] })])),
      facts(pairs.map(([pair, value]) => [names.length > 2 ? `cosine of ${pair}` : "cosine", value])),
      h(
        "div",
        { class: "tools" },
        names.length === 2 && wordSearch({ label: "Compare with a third word", placeholder: "add a third word", choose: (third) => go("compare", ...names, third) }),
        names.length === 3 && names.map((name) => h("a", { href: address("compare", ...names.filter((other) => other !== name)) }, `without ${name}`)),
      ),
      group(patterns[0]),
      h("div", { class: names.length === 2 ? "halves" : "thirds" }, patterns.slice(1).map(group)),
    ],
  };
}

function missingPage(error) {
  return {
    title: "not found",
    content: [
      heading("Not found"),
      h("p", { class: "lead message" }, error.message),
      error.closest.length > 0 && [h("h2", {}, embedded ? "Words of this page" : "Did you mean"), h("p", { class: "suggestions" }, wordList(error.closest))],
    ],
  };
}
