"use strict";

// Comparison of two models: matched dimensions.

let other; // the second model: its data, its labels, and the matches
let base = ""; // path of the page of the model that links refer to

/** within builds content of the other model, with its names and addresses. */
function within(build) {
  const own = [model, named];
  [model, named, base] = [other.about, other.named, model.other.path];
  try {
    return build();
  } finally {
    [[model, named], base] = [own, ""];
  }
}

/** minCosine is the smallest absolute cosine of two matched dimensions. */
const minCosine = 0.3;

/** matchRule explains when two dimensions match. */
const matchRule = () => `each is the other's best match by the cosine of their values over ${plural(other.words, "word")} of both models, and the absolute cosine is at least ${minCosine}`;

/** loadOther requests the second model, once. */
async function loadOther() {
  if (!model.other) throw new Missing("No second model. To compare two, run: overcomplete explore A B", []);
  if (other) return;
  const [about, known, { words, first, other: second }] = await Promise.all([ask("model", "", "", model.other.path), ask("labels", "", "", model.other.path), ask("matches")]);
  const pairs = [];
  first.forEach((match, k) => {
    const l = match.dimension;
    const live = l >= 0 && model.dimensions[k].words > 0 && about.dimensions[l].words > 0;
    if (live && second[l].dimension === k && Math.abs(match.cosine) >= minCosine) pairs.push({ k, l, cosine: match.cosine });
  });
  pairs.sort((a, b) => Math.abs(b.cosine) - Math.abs(a.cosine));
  other = { about, named: new Map(known.labels.map((label) => [label.dimension, label])), words, first, second, pairs, paired: new Set(pairs.map((p) => p.l)), pairing: new Set(pairs.map((p) => p.k)) };
}

/** bothNames shows the names of both models. */
const bothNames = () => [h("span", { class: "first" }, model.name), h("span", { class: "versus" }, " and "), h("span", { class: "second" }, model.other.name)];

/** pairText shows two matched dimensions in one row. */
function pairText({ k, l, cosine }, value, own = []) {
  return [
    h("span", { class: "side" }, dimensionText(k, value, own)),
    h("span", { class: "side" }, within(() => dimensionText(l, value * Math.sign(cosine), own))),
  ];
}

async function bothPage(word) {
  await loadOther();
  if (word === undefined) return bothModelsPage();
  const asked = await Promise.allSettled([ask("word", "word", word), ask("word", "word", word, model.other.path)]);
  const failed = asked.find((a) => a.status === "rejected")?.reason;
  if (failed) {
    failed.message += asked[0].status === "rejected" ? ` (${model.name})` : ` (${model.other.name})`;
    failed.instead = (closest) => address("both", closest);
    throw failed;
  }
  const [a, b] = asked.map(({ value }) => {
    const norm = Math.hypot(...value.active.map((w) => w.value));
    return new Map(value.active.map((w) => [w.dimension, w.value / norm]));
  });
  const shown = asked[0].value.word;
  const rows = other.pairs.map((pair) => ({ ...pair, u: a.get(pair.k) ?? 0, v: b.get(pair.l) ?? 0 })).filter((row) => row.u !== 0 || row.v !== 0);
  const agree = rows.filter((row) => row.u * row.v * row.cosine > 0).sort((x, y) => Math.abs(y.u * y.v) - Math.abs(x.u * x.v));
  const agreeing = new Set(agree.map((row) => row.k)), agreed = new Set(agree.map((row) => row.l));
  const alone = (values, inBoth) => [...values].map(([dimension, value]) => ({ dimension, value })).filter((row) => !inBoth.has(row.dimension)).sort((x, y) => Math.abs(y.value) - Math.abs(x.value));
  const share = (some, of) => percent(total(some, (row) => of(row) ** 2));
  const values = [...a.values(), ...b.values()];
  const low = Math.min(0, ...values), high = Math.max(0, ...values);
  const list = (some, colour, build) => some.length === 0 ? h("p", {}, "None.") : folded(some, 12, (part) => h("ul", { class: "bars dims" }, build(() => part.map((row) =>
    h("li", {}, bar(row.value, low, high, { colour }), h("span", { class: "value" }, signed(row.value, 2)), dimensionText(row.dimension, row.value, [shown]))))));
  const only = [alone(a, agreeing), alone(b, agreed)];
  return {
    title: `${shown} in both`,
    content: [
      heading(shown, h("span", { class: "versus" }, " in "), bothNames()),
      facts([
        [`dimensions in ${model.name}`, whole(a.size)],
        [`dimensions in ${model.other.name}`, whole(b.size)],
        ["matched", whole(agree.length)],
        [`matched share of the code's squared norm in ${model.name}`, share(agree, (row) => row.u)],
        [`matched share of the code's squared norm in ${model.other.name}`, share(agree, (row) => row.v)],
      ]),
      h("div", { class: "tools" }, wordSearch({ label: "Compare another word in both models", placeholder: "another word", choose: (next) => go("both", next) }), h("a", { href: address("both") }, "all matched dimensions")),
      h("section", {}, h("h2", {}, "Matched dimensions"),
        agree.length === 0 ? h("p", {}, "None.") : folded(agree, 12, (some) => h("ul", { class: "bars dims" }, some.map((row) =>
          h("li", {}, h("span", { class: "group" }, bar(row.u, low, high, { colour: "first" }), bar(row.v, low, high, { colour: "second" })), h("span", { class: "value" }, h("span", {}, signed(row.u, 2)), h("span", {}, signed(row.v, 2))), h("span", { class: "sides" }, pairText(row, row.u, [shown]), h("span", { class: "who" }, `cosine of values ${signed(row.cosine, 2)}`))))))),
      h("div", { class: "halves" },
        h("section", {}, h("h2", {}, "Only in ", h("span", { class: "first" }, model.name), h("small", {}, ` ${share(only[0], (row) => row.value)} of the squared norm`)), list(only[0], "first", (build) => build())),
        h("section", {}, h("h2", {}, "Only in ", h("span", { class: "second" }, model.other.name), h("small", {}, ` ${share(only[1], (row) => row.value)} of the squared norm`)), list(only[1], "second", within))),
      h("div", { class: "halves" }, asked.map(({ value: { nearest } }, i) => {
        const build = () => nearest.length === 0 ? h("p", {}, "None.") : h("ol", { class: "bars nearest" }, nearest.map((n) => h("li", {}, wordLink(n.word), bar(n.cosine, 0, 1, { colour: i ? "second" : "first" }), h("span", { class: "value" }, n.cosine.toFixed(2)))));
        return h("section", {}, h("h2", {}, "Nearest in ", h("span", { class: i ? "second" : "first" }, i ? model.other.name : model.name)), i ? within(build) : build());
      })),
      h("p", { class: "note" }, `Two dimensions match if ${matchRule()}. They are listed as matched if the word is at matching poles of both. In each model, the shares of matched and of other dimensions add up to 100 %.`),
    ],
  };
}

/** bothModelsPage lists the matched dimensions of the two models, and the others. */
function bothModelsPage() {
  const alone = (dimensions, inPairs, matches) => dimensions.map((d, k) => ({ k, ...d, best: matches[k], accuracy: d.negative ? d.bottom_accuracy : d.accuracy })).filter((d) => d.words > 0 && !inPairs.has(d.k)).sort((x, y) => (y.accuracy ?? 0) - (x.accuracy ?? 0) || Math.abs(x.best.cosine) - Math.abs(y.best.cosine));
  const list = (some, build) => some.length === 0 ? h("p", {}, "None.") : folded(some, 10, (part) => h("ul", { class: "bars dims" }, build(() => part.map((d) =>
    h("li", {}, bar(Math.abs(d.best.cosine), 0, 1), h("span", { class: "value", title: "cosine with the best match in the other model" }, d.best.dimension < 0 ? "–" : signed(d.best.cosine, 2)), dimensionText(d.k, strongPole(d.k)))))));
  const only = [alone(model.dimensions, other.pairing, other.first), alone(other.about.dimensions, other.paired, other.second)];
  return {
    title: "both models",
    content: [
      heading(bothNames()),
      h("p", { class: "lead" }, `${plural(other.pairs.length, "matched dimension")} of ${whole(model.dimensions.length)} and ${whole(other.about.dimensions.length)}. Two dimensions match if ${matchRule()}.`, other.pairs.some((pair) => pair.cosine < 0) && " If the cosine is negative, opposite poles match. The names are of the matching poles."),
      h("div", { class: "tools" }, wordSearch({ label: "Compare a word in both models", placeholder: "a word in both models", choose: (word) => go("both", word) })),
      h("section", {}, h("h2", {}, "Matched dimensions", h("small", {}, " cosine of values")),
        other.pairs.length === 0 ? h("p", {}, "None.") : folded(other.pairs, 20, (some) => h("ul", { class: "bars dims" }, some.map((pair) =>
          h("li", {}, bar(Math.abs(pair.cosine), 0, 1, { colour: pair.cosine < 0 ? "negative" : "positive" }), h("span", { class: "value" }, signed(pair.cosine, 2)), h("span", { class: "sides" }, pairText(pair, strongPole(pair.k)))))))),
      h("div", { class: "halves" },
        h("section", {}, h("h2", {}, "Only in ", h("span", { class: "first" }, model.name), h("small", {}, ` ${plural(only[0].length, "dimension")}`)), list(only[0], (build) => build())),
        h("section", {}, h("h2", {}, "Only in ", h("span", { class: "second" }, model.other.name), h("small", {}, ` ${plural(only[1].length, "dimension")}`)), list(only[1], within))),
    ],
  };
}
