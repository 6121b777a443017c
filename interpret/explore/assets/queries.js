"use strict";

// Answers to queries: comparisons of words, sums of words, and texts. The parts of a number, which add up to it,
// are listed below it by dimension.

const colours = ["first", "second", "third", "fourth"];

/** signed formats a number that can be negative. */
const signed = (x, digits) => x.toFixed(digits).replace("-", "−");

/**
 * contributions returns the parts of dimensions in the mean cosine of pairs of words, Σ uv, and in 1 − cosine =
 * Σ (u − v)²/2, for codes u and v of norm 1.
 */
function contributions(answers) {
  const rows = new Map();
  answers.forEach(({ active }, i) => {
    const norm = Math.hypot(...active.map((w) => w.value));
    for (const { dimension, value } of active) {
      if (!rows.has(dimension)) rows.set(dimension, { dimension, values: answers.map(() => 0), shared: 0, apart: 0 });
      rows.get(dimension).values[i] = value / norm;
    }
  });
  const pairs = (answers.length * (answers.length - 1)) / 2;
  for (const row of rows.values())
    row.values.forEach((u, i) => {
      for (const v of row.values.slice(0, i)) {
        row.shared += (u * v) / pairs;
        row.apart += (u - v) ** 2 / 2 / pairs;
      }
    });
  return [...rows.values()];
}

const total = (rows, of) => rows.reduce((sum, row) => sum + of(row), 0);

/**
 * ranking lists the parts of a number, largest first, and the sum of the rest. Parts are in percent of the number
 * unless it is close to zero. of(row) is the part of a row, and words(row) more content.
 */
function ranking(rows, { of, sum, most = 10, value = (row) => of(row), colour, words = () => null, others = 0, rest = 0 }) {
  const sorted = [...rows].sort((a, b) => Math.abs(of(b)) - Math.abs(of(a)));
  const share = sum > 0.005 ? (part) => percent(part / sum) : (part) => signed(part, 3);
  const low = Math.min(0, ...sorted.map(of)), high = Math.max(0, ...sorted.map(of));
  return folded(sorted, most, (some) => {
    const left = sorted.length - some.length + others;
    return h("ul", { class: "bars dims" },
      some.map((row) => h("li", {}, bar(of(row), low, high, { colour: of(row) < 0 ? "negative" : colour }), h("span", { class: "value", title: signed(of(row), 4) }, share(of(row))), h("span", {}, dimensionText(row.dimension, value(row)), words(row)))),
      left > 0 && h("li", { class: "rest" }, h("span", {}), h("span", { class: "value" }, share(total(sorted.slice(some.length), of) + rest)), h("span", {}, `and ${plural(left, "other")}`)));
  });
}

/** pieces draws several parts of 1 as one bar. */
function pieces(parts) {
  let x = 0;
  return svg("svg", { class: "bar pieces", "aria-hidden": "true" }, parts.map(([part, colour]) => {
    const rect = svg("rect", { x: `${100 * x}%`, width: `${100 * Math.max(part, 0)}%`, height: "100%", class: colour });
    x += Math.max(part, 0);
    return rect;
  }));
}

async function comparePage(...words) {
  const all = await Promise.all(words.map((word, i) =>
    ask("word", "word", word).catch((error) => {
      error.instead = (other) => address("compare", ...words.with(i, other));
      throw error;
    })));
  const names = [...new Set(all.map((answer) => answer.word))]; // distinct words
  if (names.length === 1) return wordPage(names[0]);
  const answers = names.map((name) => all.find((answer) => answer.word === name));
  const rows = contributions(answers);
  const shared = rows.filter((row) => row.shared !== 0);
  const cosine = total(shared, (row) => row.shared);
  // A dimension distinguishes the word with its largest absolute value.
  const strongest = (row) => row.values.reduce((best, v, i) => (Math.abs(v) > Math.abs(row.values[best]) ? i : best), 0);
  const apart = names.map((_, i) => rows.filter((row) => row.apart > 0 && strongest(row) === i));
  const sums = apart.map((some) => total(some, (row) => row.apart));
  const pairs = names.flatMap((a, i) => names.slice(i + 1).map((b, j) => [`${a}, ${b}`, signed(total(contributions([answers[i], answers[i + 1 + j]]), (row) => row.shared), 2)]));
  const side = (row) => row.values[strongest(row)];
  const who = (row) => h("span", { class: "who" }, row.values.map((v, i) => v !== 0 && [h("span", { class: colours[i] }, h("bdi", {}, names[i])), ` ${signed(v, 2)} `]));
  return {
    title: names.join(", "),
    content: [
      h("h1", { tabindex: -1, class: model.texts && "text" }, names.map((name, i) => [i > 0 && h("span", { class: "versus" }, " and "), wordLink(name, { class: colours[i] })])),
      names.length > 2 && facts(pairs.map(([pair, value]) => [`cosine of ${pair}`, value])),
      h("figure", { class: "sum" },
        pieces([[cosine, "shared"], ...sums.map((sum, i) => [sum, colours[i]])]),
        h("figcaption", {}, "1 = ", h("b", {}, signed(cosine, 2)), ` shared (${names.length > 2 ? "the mean cosine" : "the cosine"})`, sums.map((sum, i) => [" + ", h("b", { class: colours[i] }, signed(sum, 2)), " distinguishing ", h("bdi", {}, names[i])]))),
      h("div", { class: "tools" },
        names.length < 4 && wordSearch({ label: `Compare with another ${unit()}`, placeholder: `add a ${unit()}`, choose: (other) => go("compare", ...names, other) }),
        names.length > 2 && names.map((name) => h("a", { href: address("compare", ...names.filter((other) => other !== name)) }, "without ", h("bdi", {}, name)))),
      h("section", {},
        h("h2", {}, "Shared dimensions", h("small", {}, ` cosine ${signed(cosine, 2)} =`)),
        shared.length === 0 ? h("p", {}, "None.") : ranking(shared, { of: (row) => row.shared, sum: cosine, value: side, words: who, colour: "shared", most: 6 })),
      h("div", { class: names.length === 3 ? "thirds" : "halves" }, apart.map((some, i) =>
        h("section", {},
          h("h2", {}, "Dimensions distinguishing ", h("bdi", { class: colours[i] }, names[i]), h("small", {}, ` ${signed(sums[i], 2)} =`)),
          some.length === 0 ? h("p", {}, "None.") : ranking(some, { of: (row) => row.apart, sum: sums[i], value: side, colour: colours[i], words: (row) => row.values.filter((v) => v !== 0).length > 1 && who(row) })))),
      weakNote(rows.map((row) => ({ dimension: row.dimension, value: side(row) }))),
    ],
  };
}

/** withoutLink links to the same query with a dimension excluded. */
function withoutLink(query, k) {
  return !embedded && h("a", { class: "compare", href: address("query", `${query} - #${k}`), "aria-label": `exclude dimension ${k} from the nearest ${unit()}s`, title: "exclude this dimension" }, "⊖");
}

/** queryPage shows the answer to a query, or redirects to the page of its words or of its dimension. */
async function queryPage(query) {
  const here = location.hash;
  let answer;
  try {
    answer = await ask("query", "query", query);
  } catch (error) {
    if (error.word) error.instead = (other) => address("query", query.replace(error.word, () => other));
    throw error;
  }
  const { kind, words, weights, without: off = [] } = answer;
  if (kind === "search") return searchPage(query, answer);
  const page = { words: [words.length === 1 ? "word" : "compare", ...words], dimension: ["dimension", answer.dimension] }[kind];
  if (page && location.hash !== here) return new Promise(() => {}); // the address has changed; another page replaces this one
  if (page) {
    history.replaceState(null, "", address(...page)); // keep the query out of the history
    return route()();
  }
  const sum = kind === "arithmetic";
  const short = query.length > 140 ? query.slice(0, 139) + "…" : query;
  const why = h("section", { "aria-live": "polite" });
  const buttons = [];
  function explain(reason, i) {
    buttons.forEach((button, j) => button.setAttribute("aria-pressed", String(i === j)));
    why.replaceChildren(...h("div", {},
      h("h2", {}, "Dimensions shared with ", h("bdi", {}, reason.word), h("small", {}, ` cosine ${signed(reason.cosine, 2)} =`)),
      ranking(reason.parts, { of: (row) => row.part, sum: reason.cosine, value: (row) => row.value, others: reason.others, rest: reason.rest, colour: "shared" }),
      weakNote(reason.parts)).childNodes);
  }
  const list = h("ol", { class: model.texts ? "excerpts" : "bars nearest" }, answer.nearest.map((reason, i) => {
    const button = h("button", { type: "button", class: "why", "aria-label": `why ${reason.word}`, onclick: () => explain(reason, i) }, "why");
    buttons.push(button);
    const score = [bar(reason.cosine, 0, 1), h("span", { class: "value" }, signed(reason.cosine, 2)), button];
    return model.texts ? textItem(reason.word, answer.texts?.[reason.word], [], score) : h("li", {}, wordLink(reason.word), score);
  }));
  if (answer.nearest.length > 0) explain(answer.nearest[0], 0);
  const most = Math.max(...answer.dimensions.map((d) => Math.abs(d.value)));
  const carriers = (d) => d.parts.map((part, i) => ({ part, word: words[i] })).filter(({ part }) => part !== 0).sort((a, b) => Math.abs(b.part) - Math.abs(a.part)).slice(0, 4);
  return {
    title: short,
    content: [
      sum
        ? h("h1", { tabindex: -1, class: model.texts && "text" }, words.map((word, i) => [weights[i] < 0 ? (i > 0 ? h("span", { class: "versus" }, " − ") : "−") : i > 0 && h("span", { class: "versus" }, " + "), Math.abs(weights[i]) !== 1 && `${Math.abs(weights[i])} × `, wordLink(word)]).concat(off.map((k) => [h("span", { class: "versus" }, " without "), nameLink(k)])))
        : h("h1", { tabindex: -1, class: "text" }, short),
      h("p", { class: "lead" }, sum ? `Codes are scaled to norm 1 before they are added.` : `The mean of ${plural(words.length, "word")}: `, !sum && wordList(words),
        answer.unknown.length > 0 && [" Not in the model: ", answer.unknown.map((word, i) => [i > 0 && ", ", h("bdi", {}, word)]), "."]),
      answer.nearest.length === 0
        ? h("p", {}, `No nearest ${unit()}s: the sum is zero.`)
        : h("div", { class: "halves" }, h("section", {}, h("h2", {}, `Nearest ${unit()}s`), steering(query, answer.dimensions, list)), why),
      answer.dimensions.length > 0 && h("section", {},
        h("h2", {}, sum ? "Dimensions of the sum" : "Dimensions of the text", h("small", {}, ` value, and the parts of the ${unit()}s`)),
        folded(answer.dimensions, 12, (some) => h("ul", { class: "bars dims" }, some.map((d) =>
          h("li", {}, bar(d.value, Math.min(0, ...answer.dimensions.map((o) => o.value)), most), h("span", { class: "value" }, signed(d.value, 2)),
            h("span", {}, dimensionText(d.dimension, d.value), sum && withoutLink(query, d.dimension), h("span", { class: "who" }, carriers(d).map(({ part, word }) => [wordLink(word), ` ${signed(part, 2)} `])))))))),
    ],
  };
}
