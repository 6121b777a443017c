"use strict";

// Texts in lists, on their own pages, and in results of a search.

/** marked highlights words in a text. */
function marked(text, words) {
  const unspaced = /^[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}]/u;
  const patterns = words.map((word) => {
    const literal = word.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
    if (unspaced.test(word)) return literal;
    // Also highlight longer words that begin with a word, unless it is short.
    return "(?<![\\p{L}\\p{N}])" + literal + (word.length < 3 ? "(?![\\p{L}\\p{N}])" : "[\\p{L}\\p{N}]*");
  });
  const content = [];
  let end = 0;
  if (patterns.length > 0)
    for (const { 0: word, index } of text.matchAll(new RegExp(patterns.join("|"), "giu"))) {
      content.push(text.slice(end, index), h("mark", {}, word));
      end = index + word.length;
    }
  return [...content, text.slice(end)];
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
          h("h2", {}, "Dimensions", h("small", {}, " share of the code's squared norm")),
          parts.length === 0 ? h("p", {}, "The code is zero.") : partsList(parts, ({ dimension }) => !/\s/.test(id) && withoutLink(id, dimension)),
          weakNote(answer.active)),
        h("section", {},
          h("h2", {}, "Nearest texts", h("small", {}, " cosine of codes")),
          steering(id, answer.active),
          answer.nearest.length === 0 && h("p", {}, "No other text uses these dimensions."),
          folded(answer.nearest, 8, (some) => h("ol", { class: "excerpts" }, some.map((n) =>
            textItem(n.word, answer.texts?.[n.word], words, bar(n.cosine, 0, 1), h("span", { class: "value" }, n.cosine.toFixed(2)),
              has("word", n.word) && h("a", { class: "compare", href: address("compare", id, n.word), "aria-label": `compare with ${n.word}` }, "compare"))))),
          wordSearch({ label: `Compare ${id} with`, placeholder: "compare with another text", choose: (other) => go("compare", id, other) })))],
  };
}

/** searchPage lists the texts that match a query, and their dimensions. */
async function searchPage(query, { words, total, matched = [], matching = [], unknown, nearest = [], failure, texts: excerpts }) {
  const isMatched = (words) => words.some((word) => matched.includes(word));
  const found = new Map(matching.map((m) => [m.dimension, m]));
  const rows = (k) => found.get(k)?.words ?? 0;
  const named = model.strongest.filter((k) => isMatched(labelWords(k, strongPole(k)))).sort((a, b) => rows(b) - rows(a)).slice(0, 3);
  const dimensions = [...named, ...matching.map((m) => m.dimension).filter((k) => !named.includes(k))].slice(0, 8);
  const t = model.themes ? await loadTopics() : undefined;
  const topics = t ? [...t.topic.values()].filter((topic) => isMatched([...topic.words, ...topicName(topic).toLowerCase().split(/[^\p{L}\p{N}]+/u)])).slice(0, 6) : [];
  const terms = matched.map((word, i) => [i > 0 && ", ", h("bdi", {}, word)]);
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
            textItem(n.word, excerpts?.[n.word], matched, bar(n.cosine, 0, 1), h("span", { class: "value" }, signed(n.cosine, 2)), h("span", {}, n.parts.slice(0, 2).map((part, i) => [i > 0 && " · ", name(part.dimension, part.value)]))))))],
          words.length > 0 && [nearest.length > 0 && h("h2", {}, "Texts with these words"), folded(words, 12, (some) => h("ol", { class: "excerpts" }, some.map((id) => textItem(id, excerpts?.[id], matched))))]),
        h("section", { class: "aside" },
          topics.length > 0 && [h("h2", {}, "Topics"), h("ul", { class: "bars parts" }, topics.map((topic) =>
            h("li", {}, topicLink(topic), bar(topic.share, 0, t.topics[0].share), h("span", { class: "value" }, percent(topic.share)))))],
          dimensions.length > 0 && h("h2", {}, "Matching dimensions"),
          h("ul", { class: "bars parts" }, dimensions.map((k) => h("li", {}, nameLink(k, strongPole(k)),
            found.has(k) ? [bar(found.get(k).words, 0, words.length, { mark: found.get(k).expected }), h("span", { class: "value" }, percent(found.get(k).words / words.length))] : h("span", { class: "note" }, "by label")))),
          matching.length > 0 && h("p", { class: "note" }, "The bar shows the share of the texts found that use the dimension. The line marks chance.")))],
  };
}
