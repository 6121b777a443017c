"use strict";

// Elements, links, and the data of the page.

/** h makes an HTML element. Children that are strings become text, never markup. */
function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** svg makes an SVG element. */
function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.flat(Infinity).filter((child) => child != null && child !== false));
  return element;
}

// Numbers in English notation.
const whole = (n) => n.toLocaleString("en");
const decimal = (x) => (x === 0 ? "0" : x.toLocaleString("en", { maximumSignificantDigits: 3 }).replace("-", "−"));
/** column returns a format for a column of numbers, which shows three digits of the largest. */
function column(values) {
  const digits = 2 - Math.floor(Math.log10(Math.max(...values.map(Math.abs))));
  if (!(digits >= 0 && digits <= 6)) return decimal;
  return (x) => x.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits }).replace("-", "−");
}
const percent = (x) => (100 * x).toLocaleString("en", { maximumSignificantDigits: Math.abs(x) < 0.0995 ? 2 : 3 }).replace("-", "−") + " %";
const plural = (n, one) => `${whole(n)} ${one}${n === 1 ? "" : "s"}`;

/** address is the URL of a page, such as address("word", "bank"). */
const address = (...parts) => "#/" + parts.map((part) => encodeURIComponent(String(part).toWellFormed())).join("/");

/** given returns the parameters of the address after its question mark: the view and the settings of a map. */
const given = () => new URLSearchParams(location.hash.split("?")[1] ?? "");

let embedded = null; // the data of an exported page

/** bodies maps the ids of an exported page to the beginnings of their texts, in which it searches. */
const bodies = new Map();

/** unpack reads the data of an exported page. */
async function unpack() {
  const data = document.getElementById("data");
  if (!data || embedded) return;
  const packed = new Blob([Uint8Array.from(atob(data.textContent), (c) => c.charCodeAt(0))]);
  embedded = await new Response(packed.stream().pipeThrough(new DecompressionStream("gzip"))).json();
  embedded.bodies?.forEach(([excerpt, text, ...values], i) => {
    const id = embedded.rows.words[i];
    texts.set(id, excerpt);
    bodies.set(id, text);
    columnsOf.set(id, values.map((value, c) => [embedded.columns[c], value]));
  });
}

/** has reports whether a word or a dimension has a page. */
const has = (kind, key) => hasCode(kind, key) || (kind === "word" && bodies.has(key));

/** hasCode reports whether the page of a word or dimension has numbers. */
const hasCode = (kind, key) => !embedded || Object.hasOwn(embedded[kind], key);

/** A Missing reports a word or dimension without a page. */
class Missing extends Error {
  constructor(message, closest, word) {
    super(message);
    this.closest = closest ?? [];
    this.word = word; // the unknown word
  }
}

/** ask requests data of a kind, such as "word", from the model. */
async function ask(kind, parameter, value) {
  const answer = await answerTo(kind, parameter, value);
  for (const [id, text] of Object.entries(answer.texts ?? {})) if (text.length > (texts.get(id) ?? "").length) texts.set(id, text);
  return answer;
}

/** texts maps ids to the longest known texts of rows. */
const texts = new Map();

/** columnsOf maps ids to the names and values of their columns. */
const columnsOf = new Map();

/** loadTexts requests excerpts and columns of points of the map of rows. */
async function loadTexts(points) {
  const missing = model.texts && !embedded ? points.filter((p) => !columnsOf.has(p.word)) : [];
  for (let i = 0; i < missing.length; i += 200) {
    const { columns, values } = await ask("texts", "rows", missing.slice(i, i + 200).map((p) => p.row).join());
    for (const [id, own] of Object.entries(values)) columnsOf.set(id, own.map((value, c) => [columns[c], value]));
  }
}

/** textOf returns the text of an id on one line, or the word itself. */
const textOf = (word) => (texts.get(word) ?? "").replace(/\s+/g, " ").trim() || word;

async function answerTo(kind, parameter, value) {
  if (embedded) return askEmbedded(kind, parameter, value);
  const response = await fetch(`data/${kind}${parameter ? `?${parameter}=${encodeURIComponent(String(value).toWellFormed())}` : ""}`);
  const answer = await response.json();
  if (!response.ok) throw new Missing(answer.error, answer.closest, answer.word);
  return answer;
}

/** send posts a change and returns the new state. */
async function send(kind, value) {
  const response = await fetch(`data/${kind}`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(value) });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error);
  return answer;
}

function askEmbedded(kind, parameter, value) {
  if (!parameter) return embedded[kind];
  if (kind === "complete") {
    const prefix = value.toLowerCase();
    const known = [...new Set([...embeddedWords(), ...bodies.keys()])];
    const begin = known.filter((word) => word.toLowerCase().startsWith(prefix));
    const contain = bodies.size > 0 ? rankBodies(value).found.map((hit) => embedded.rows.words[hit.i]) : known.filter((word) => model.texts && textOf(word).toLowerCase().includes(prefix));
    return { words: [...new Set([...begin, ...contain])].slice(0, 10) };
  }
  if (kind === "query") {
    const known = (word) => [word, word.toLowerCase()].find((key) => hasCode("word", key));
    const words = (known(value) ? [value] : value.split(/\s+/)).map(known);
    if (words.every(Boolean) && words.length <= 4) return { kind: "words", words };
    if (hasCode("dimension", value)) return { kind: "dimension", dimension: Number(value), words };
    if (bodies.size > 0) return searchBodies(value);
    throw new Missing("An exported page answers only queries for its own words and dimensions.", embeddedWords().slice(0, 10));
  }
  for (const key of [value, value.toLowerCase()]) if (hasCode(kind, key)) return embedded[kind][key];
  if (kind === "word" && bodies.has(value)) {
    const at = embedded.rows.words.indexOf(value);
    return { word: value, row: embedded.rows.rows[at], active: [], nearest: [], columns: columnsOf.get(value), topic: embedded.rows.regions[embedded.rows.region[at]]?.topic, texts: { [value]: bodies.get(value) } };
  }
  throw new Missing(`The ${kind} ${value} is not part of this page.`, kind === "word" ? embeddedWords().slice(0, 10) : []);
}

/** hasDimensions reports whether dimensions have pages. */
const hasDimensions = () => !embedded || Object.keys(embedded.dimension).length > 0;

/** isSearchable reports whether the page can answer queries. */
const isSearchable = () => !embedded || bodies.size + embeddedWords().length > 0;

const embeddedWords = () => Object.values(embedded.word).sort((a, b) => a.row - b.row).map((answer) => answer.word);

/** visible returns a word or, if it is invisible, the names of its characters. */
const visible = (word) => (/[^\s\p{C}]/u.test(word) ? word : Array.from(word, (c) => "U+" + c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")).join(" "));

/** wordLink shows a word, with a link to its page if it exists. */
function wordLink(word, attributes = {}) {
  const text = textOf(word);
  const shown = visible(text.length > 200 ? text.slice(0, 199).toWellFormed() + "…" : text);
  const title = model.texts ? { title: word } : {};
  if (!has("word", word)) return h("span", { ...title, ...attributes }, shown);
  return h("a", { href: address("word", word), ...title, ...attributes }, shown);
}

/** unit returns the kind of rows: text or word. */
const unit = () => (model?.texts ? "text" : "word");

/** keywordList shows words of texts, with links to the texts that contain them. */
function keywordList(words, attributes = {}) {
  return h("span", { class: "words" }, words.map((word) => [embedded ? h("bdi", {}, word) : h("a", { href: address("query", word), ...attributes }, visible(word)), " "]));
}

function dimensionLink(k, ...content) {
  if (!has("dimension", k)) return h("span", { class: "number" }, ...content);
  return h("a", { href: address("dimension", k), class: "number" }, ...content);
}

/** listText shows words separated by commas. */
const listText = (words) => words.map((word, i) => [i > 0 && ", ", h("bdi", {}, word)]);

/** wordsText shows words separated by spaces, each with its own direction. */
const wordsText = (words) => words.map((word) => [h("bdi", {}, word), " "]);

/** wordList shows links to words, and the page's own words in bold. The links have the given attributes. */
function wordList(words, own = [], attributes = {}) {
  return h("span", { class: "words" }, words.map((word) => [own.includes(word) ? h("b", {}, word) : wordLink(word, attributes), " "]));
}
