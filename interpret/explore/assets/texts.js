"use strict";

// Texts in lists, on their own pages, and in results of a search.

const unspaced = String.raw`[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}ー]`;

/** patternOf returns a regular expression for words, also for longer words that begin with one, unless it is short. */
function patternOf(words) {
  const patterns = words.map((word) => {
    const literal = word.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
    if (RegExp(unspaced, "u").test(word)) return literal;
    return "(?<![\\p{L}\\p{N}])" + literal + (word.length < 3 ? "(?![\\p{L}\\p{N}])" : "[\\p{L}\\p{N}]*");
  });
  return new RegExp(patterns.join("|"), "giu");
}

const mark = String.raw`[\p{M}\u200c\u200d\u{1f3fb}-\u{1f3ff}]`, emoji = String.raw`(?=[\u2600-\u{10ffff}])\p{So}`;
const token = RegExp(`(?:${unspaced}${mark}*)+|${emoji}${mark}*(?:(?<=\\u200d)${emoji}${mark}*)*|(?:(?!${unspaced})(?:[\\p{L}\\p{Nd}'’]|${mark}))+`, "gu");

/** tokenize returns the words of a text, as the server's index does: see Tokenize in internal/text. */
function tokenize(text) {
  return (text.toLowerCase().match(token) ?? []).flatMap((run) => {
    if (!RegExp(`^${unspaced}`, "u").test(run)) return run.replaceAll("’", "'").split("''").map((word) => word.replace(/^'+|'+$/g, "")).filter(Boolean);
    const characters = run.match(RegExp(`${unspaced}${mark}*`, "gu"));
    return characters.length === 1 ? characters : characters.slice(1).map((c, i) => characters[i] + c);
  });
}

/** marked highlights words in a text. */
function marked(text, words) {
  const content = [];
  let end = 0;
  if (words.length > 0)
    for (const { 0: word, index } of text.matchAll(patternOf(words))) {
      content.push(text.slice(end, index), h("mark", {}, word));
      end = index + word.length;
    }
  return [...content, text.slice(end)];
}

let indexed; // words of the texts of an exported page

function indexBodies() {
  const rows = [...bodies.values()].map(tokenize), vocabulary = new Map(); // words to places
  rows.forEach((tokens, i) => new Set(tokens).forEach((word) => vocabulary.has(word) ? vocabulary.get(word).push(i) : vocabulary.set(word, [i])));
  const lengths = rows.map((tokens) => new Set(tokens).size);
  const count = rows.length + embedded.topics.blank; // the server counts empty texts, too
  return { rows, vocabulary, lengths, count, mean: total(lengths, (n) => n / count) };
}

/** rankBodies ranks the texts of an exported page by the words of a query, as the server does: see Search in interpret. */
function rankBodies(query) {
  const { rows, vocabulary, lengths, count, mean } = (indexed ??= indexBodies());
  const unknown = [];
  let words = [...new Set(tokenize(query))].flatMap((word) => {
    const like = vocabulary.has(word) ? [word] : [...vocabulary.keys()].filter((other) => other.startsWith(word)).sort().slice(0, 200);
    const places = new Set(like.flatMap((other) => vocabulary.get(other)));
    if (places.size > 0) return { word, like: new Set(like), places, idf: Math.log1p(1 / (places.size / count) - 0.5) };
    unknown.push(word);
    return [];
  });
  if (words.length > 32) words = words.sort((a, b) => b.idf - a.idf).slice(0, 32);
  const rare = words.filter(({ places }) => places.size <= count / 4), required = rare.length > 0 ? rare : words;
  const found = [...new Set(required.flatMap(({ places }) => [...places]))].map((i) => {
    const counts = words.map(() => 0), pairs = new Set();
    let last = -1;
    for (const word of rows[i]) {
      const at = words.findIndex(({ like }) => like.has(word));
      if (at >= 0) counts[at]++;
      if (at > 0 && at === last + 1) pairs.add(at);
      last = at;
    }
    const score = words.reduce((sum, { idf }, j) => sum + (idf * counts[j] * 2.2) / (counts[j] + 1.2 * (0.25 + 0.75 * (lengths[i] / mean))), 0);
    const all = required.every(({ places }) => places.has(i)); // these texts come first
    return { i, all, score: score * (1 + pairs.size / Math.max(words.length - 1, 1)) + (all ? 1e6 : 0) };
  });
  return { found: found.sort((a, b) => b.score - a.score || a.i - b.i), matched: required.map(({ word }) => word), unknown };
}

/** searchBodies answers a search on an exported page. */
function searchBodies(query) {
  const { found, matched, unknown } = rankBodies(query);
  if (found.length === 0) throw new Missing(`No text of this page contains ${unknown.join(", ") || query}.`, []);
  const all = found.filter((hit) => hit.all);
  const { words: ids, regions, region } = embedded.rows;
  const of = (hit) => regions[region[hit.i]]?.topic;
  const counts = new Map();
  for (const hit of all.length > 0 ? all : found) {
    let r = region[hit.i];
    while (regions[r]?.parent >= 0) r = regions[r].parent;
    if (r >= 0) counts.set(regions[r].topic, (counts.get(regions[r].topic) ?? 0) + 1);
  }
  const best = found.slice(0, 50);
  const around = (text) => {
    const before = text.search(patternOf(matched)) - 80;
    const from = before > 0 ? text.indexOf(" ", before) + 1 : 0;
    const part = text.slice(from, from + 240).toWellFormed();
    return (from > 0 ? "…" : "") + (from + 240 < text.length ? part.replace(/ \S{0,60}$/, "") + "…" : part);
  };
  return { kind: "search", words: best.map((hit) => ids[hit.i]), total: all.length, matched, unknown, of: best.map(of),
    topics: [...counts].map(([topic, texts]) => ({ topic, texts })).sort((a, b) => b.texts - a.texts),
    texts: Object.fromEntries(best.map((hit) => [ids[hit.i], around(bodies.get(ids[hit.i]).replace(/(?:^|\s)[\s>|＞]*/g, " ").trim())])) };
}

/** textItem shows a text in a list: an excerpt with highlighted words, as a link to the page of the text, and more content. */
function textItem(id, excerpt, words, ...more) {
  const text = (excerpt ?? textOf(id)).replace(/\s+/g, " ").trim();
  const attributes = { class: "excerpt", dir: "auto", title: id };
  const content = text ? marked(visible(text), words) : h("i", {}, `${id} (no text)`);
  return h("li", {}, has("word", id) ? h("a", { ...attributes, href: address("word", id) }, content) : h("span", attributes, content), more.length > 0 && h("div", { class: "about" }, more));
}

/** clipped shows the first lines of a text, and a button that shows all. */
function clipped(text) {
  const body = h("div", { class: "body clipped", dir: "auto" }, text);
  const more = h("button", { type: "button", class: "more", hidden: true, "aria-expanded": "false" }, "Show all of it");
  more.addEventListener("click", () => {
    const all = body.classList.toggle("clipped");
    more.textContent = all ? "Show all of it" : "Show less";
    more.setAttribute("aria-expanded", String(!all));
  });
  new ResizeObserver(() => {
    if (body.classList.contains("clipped")) more.hidden = body.scrollHeight <= body.clientHeight + 1;
  }).observe(body);
  return [body, more];
}

/** partsList shows dimensions with their shares of a total. */
const partsList = (rows, after = () => null) => folded(rows, 12, (some) =>
  h("ul", { class: "bars parts" }, some.map((row) => h("li", {}, nameLink(row.dimension, row.value), bar(row.part, 0, rows[0].part, { colour: row.value < 0 ? "negative" : "positive" }), h("span", { class: "value" }, percent(row.part)), after(row)))));

/** textPage shows a text, its topics and dimensions, and its nearest texts. */
async function textPage(answer) {
  const t = model.themes ? await loadTopics() : undefined;
  const path = pathOf(t?.topic.get(answer.topic));
  const themes = (answer.themes ?? []).map((w) => ({ ...w, theme: t?.topic.get(w.dimension) })).filter((w) => w.theme);
  const id = answer.word, text = answer.texts?.[id]?.trim();
  const norm = answer.active.reduce((sum, w) => sum + w.value ** 2, 0);
  const parts = answer.active.map((w) => ({ ...w, part: w.value ** 2 / norm }));
  const words = answer.active.slice(0, 4).flatMap((w) => ends(w.dimension, w.value));
  return {
    title: textOf(id).slice(0, 80),
    content: [
      h("h1", { tabindex: -1, class: "eyebrow" }, "text ", h("bdi", {}, id)),
      h("div", { class: "reading" },
        h("section", {},
          text ? clipped(text) : h("p", { class: "note" }, "This text is empty."),
          facts([...(answer.columns ?? []).map(([name, value]) => [visible(name), h("bdi", {}, value || "–")]), ["row", `${whole(answer.row + 1)} of ${whole(model.words)}`]])),
        h("section", { class: "aside" },
          path.length > 0 && [h("h2", {}, "Topic"), h("p", {}, pathLinks(path))],
          themes.length > 0 && [h("h2", {}, "Nearest topics", h("small", {}, " cosine")), folded(themes, 4, (some) => h("ul", { class: "bars parts" }, some.map(({ theme, value }) => h("li", {}, topicLink(theme), bar(value, 0, 1), h("span", { class: "value" }, value.toFixed(2))))))],
          hasCode("word", id) && [h("h2", {}, "Dimensions", h("small", {}, " share of the code's squared norm")),
            parts.length === 0 ? h("p", {}, "The code is zero.") : partsList(parts, ({ dimension }) => !/\s/.test(id) && withoutLink(id, dimension)),
            weakNote(answer.active)]),
        hasCode("word", id) && h("section", {},
          h("h2", {}, "Nearest texts", h("small", {}, " cosine of codes")),
          answer.nearest.length === 0 && h("p", {}, "No other text uses these dimensions."),
          steering(id, answer.active, folded(answer.nearest, 8, (some) => h("ol", { class: "excerpts" }, some.map((n) =>
            textItem(n.word, answer.texts?.[n.word], words, bar(n.cosine, 0, 1), h("span", { class: "value" }, n.cosine.toFixed(2)),
              hasCode("word", n.word) && h("a", { class: "compare", href: address("compare", id, n.word), "aria-label": `compare with ${n.word}` }, "compare")))))),
          wordSearch({ label: `Compare ${id} with`, placeholder: "compare with another text", choose: (other) => go("compare", id, other) })))],
  };
}

/** searchPage lists the texts that match a query, their topics and dimensions. */
async function searchPage(query, { words, total, matched = [], matching = [], unknown, nearest = [], failure, topics = [], of = [], texts: excerpts = {} }) {
  const isMatched = (words) => words.some((word) => matched.includes(word));
  const matches = new Map(matching.map((m) => [m.dimension, m]));
  const rows = (k) => matches.get(k)?.words ?? 0;
  const named = model.strongest.filter((k) => isMatched(labelWords(k, strongPole(k)))).sort((a, b) => rows(b) - rows(a)).slice(0, 3);
  const dimensions = [...named, ...matching.map((m) => m.dimension).filter((k) => !named.includes(k))].slice(0, 8);
  const t = model.themes ? await loadTopics() : undefined;
  const counted = total || words.length;
  const inTopics = topics.map((found) => ({ ...found, topic: t.topic.get(found.topic) })).filter(({ texts }) => 20 * texts >= counted);
  const terms = matched.map((word, i) => [i > 0 && ", ", h("bdi", {}, word)]);
  // Texts with the same excerpt, such as copies, are one item.
  const copies = Map.groupBy(words.map((id, i) => ({ id, topic: t?.topic.get(of[i]) })), ({ id }) => excerpts[id] ?? id);
  const items = [...copies.values()].map(([first, ...others]) => ({ ...first, copies: others.length }));
  return {
    title: query,
    content: [
      heading(query),
      h("p", { class: "lead" },
        words.length === 0 ? [] : total > 0 ? [`${plural(total, "text")} ${total === 1 ? "has " : "have "}`, matched.length > 1 && `all of `, terms, total > words.length ? `; these are the best ${whole(words.length)}.` : total < words.length ? ". The others have some of them." : "."] : [`No text has all of `, terms, ". These have some of them."],
        unknown.length > 0 && [" No text has ", unknown.map((word, i) => [i > 0 && ", ", h("bdi", {}, word)]), "."]),
      h("div", { class: "reading" },
        h("section", {},
          failure && h("p", { class: "note", role: "alert" }, failure),
          nearest.length > 0 && [h("h2", {}, "Nearest in meaning"), folded(nearest, 5, (some) => h("ol", { class: "excerpts" }, some.map((n) =>
            textItem(n.word, excerpts[n.word], matched, bar(n.cosine, 0, 1), h("span", { class: "value" }, signed(n.cosine, 2)), h("span", {}, n.parts.slice(0, 2).map((part, i) => [i > 0 && " · ", name(part.dimension, part.value)]))))))],
          words.length > 0 && [nearest.length > 0 && h("h2", {}, "Texts with these words"), folded(items, 12, (some) => h("ol", { class: "excerpts" }, some.map(({ id, topic, copies }) =>
            textItem(id, excerpts[id], matched, topic && pathLinks(pathOf(topic).slice(0, 2)), copies > 0 && h("span", { class: "note" }, `and ${whole(copies)} like it`)))))]),
        h("section", { class: "aside" },
          inTopics.length > 0 && [h("h2", {}, "Topics of the texts found"), h("ul", { class: "bars parts" }, inTopics.map(({ topic, texts }) =>
            h("li", {}, topicLink(topic), bar(texts, 0, inTopics[0].texts), h("span", { class: "value" }, whole(texts)))))],
          dimensions.length > 0 && h("h2", {}, "Matching dimensions"),
          h("ul", { class: "bars parts" }, dimensions.map((k) => h("li", {}, nameLink(k, strongPole(k)),
            matches.has(k) ? [bar(matches.get(k).words, 0, words.length, { mark: matches.get(k).expected }), h("span", { class: "value" }, percent(matches.get(k).words / words.length))] : h("span", { class: "note" }, "by label")))),
          matching.length > 0 && h("p", { class: "note" }, "The bar shows the share of the texts found that use the dimension. The line marks chance.")))],
  };
}
