"use strict";

// The search field, and the page of an address.

let searches = 0;

/**
 * wordSearch returns a text field that completes words, and calls choose with the word entered. With queries, it
 * accepts any query and completes its last word.
 */
function wordSearch({ label, placeholder, choose, queries = false }) {
  const id = `completions-${++searches}`;
  const list = h("ul", { id, role: "listbox", "aria-label": "Completions", hidden: true });
  const input = h("input", {
    type: "text", role: "combobox", "aria-label": label, placeholder, "aria-expanded": "false", "aria-controls": id, "aria-autocomplete": "list",
    autocomplete: "off", autocapitalize: "none", spellcheck: "false", enterkeyhint: "search", maxlength: queries ? 4000 : 200,
  });
  let options = []; // {text, act}
  let active = -1;
  let asked = 0;

  const close = () => {
    asked++; // ignore pending answers
    options = [];
    active = -1;
    render();
  };
  const act = (option) => {
    close();
    if (option.fill) {
      input.value = option.fill;
      return;
    }
    input.value = "";
    input.blur();
    option.act();
  };
  function render() {
    list.replaceChildren(
      ...options.map((option, i) =>
        // mousedown, because the field loses the focus before a click
        h("li", { id: `${id}-${i}`, role: "option", "aria-selected": String(i === active), onmousedown: (event) => { event.preventDefault(); act(option); } }, option.text, option.more && h("small", {}, " ", h("bdi", {}, option.more))),
      ),
    );
    list.hidden = options.length === 0;
    input.setAttribute("aria-expanded", String(!list.hidden));
    if (active >= 0) input.setAttribute("aria-activedescendant", `${id}-${active}`);
    else input.removeAttribute("aria-activedescendant");
  }
  async function complete() {
    const text = input.value.trim();
    const mine = ++asked;
    const { words, texts: found = { __proto__: null } } = text ? await ask("complete", "prefix", text.slice(0, 200)) : { words: [] };
    const topics = queries && text.length > 1 && model.themes ? [...(await loadTopics()).topic.values()].filter((topic) => topicName(topic).toLowerCase().includes(text.toLowerCase())).slice(0, 4) : [];
    const [, before, last] = input.value.match(/^(.*\s)?(\S*)$/s);
    const more = queries && !model.texts && before?.trim() && last && words.length === 0 ? (await ask("complete", "prefix", last.slice(0, 200))).words : [];
    if (mine !== asked) return; // the input has changed
    const chosen = options[active]?.text; // chosen during the request
    const clip = (text) => (text.length > 100 ? text.slice(0, 99).toWellFormed() + "…" : text); // as long as the server's
    options = words.slice(0, queries && model.texts ? 5 : 10).map((word) => ({ text: word, more: model.texts && textOf(word) !== word ? clip(found[word] || textOf(word)) : "", act: () => choose(word) }));
    if (queries) {
      options.unshift(...topics.map((topic) => ({ text: topicName(topic), more: `topic, ${plural(topic.count, unit())}`, act: () => go("topic", topic.id) })));
      if (model.texts && text) options.unshift({ text: `search for ${text}`, act: () => go("query", text) });
      const dimension = (k) => ({ text: `dimension ${k}`, more: matchingName(k, text), act: () => go("dimension", k) });
      if (/^\d{1,9}$/.test(text) && Number(text) < model.dimensions.length && has("dimension", Number(text))) options.push({ ...dimension(Number(text)), more: "" });
      if (text.length > 1) options.push(...matchingDimensions(text).slice(0, Math.max(10 - options.length, 3)).map(dimension));
    }
    options.push(...more.map((word) => ({ text: before + word, fill: before + word + " " })));
    active = options.findIndex((option) => option.text === chosen);
    render();
  }
  input.addEventListener("input", complete);
  input.addEventListener("focus", complete);
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && options.length > 0) {
      // The ring of options includes the field itself.
      active = ((active + 1 + step + options.length + 1) % (options.length + 1)) - 1;
      render();
    } else if (event.key === "Enter" && !event.isComposing) {
      const text = input.value.trim();
      if (active >= 0) act(options[active]);
      else if (text) act({ act: () => choose(text) });
    } else if (event.key === "Escape") {
      if (options.length > 0) close();
      else input.blur();
    } else return;
    event.preventDefault();
  });
  return h("div", { class: "combobox" }, input, list);
}

/** matchingName returns the name of a pole that contains a text, preferably the stronger pole. */
const matchingName = (k, text) => [strongPole(k), -strongPole(k)].map((pole) => nameText(k, pole)).find((name) => name.toLowerCase().includes(text.toLowerCase()));

/** matchingDimensions returns the dimensions whose names contain a text, equal names first. */
function matchingDimensions(text) {
  const wanted = text.toLowerCase();
  const like = new Map(model.dimensions.map((d, k) => [k, d.words > 0 && has("dimension", k) && matchingName(k, text)?.toLowerCase()]).filter(([, name]) => name));
  const order = (k) => (like.get(k) === wanted ? 0 : named.get(k)?.name ? 1 : like.get(k).startsWith(wanted) ? 2 : 3);
  return [...like.keys()].sort((a, b) => order(a) - order(b));
}

/** askFor opens the page of the dimension that a text names, if it has a comma, and otherwise the page of a query. */
function askFor(text) {
  const k = matchingDimensions(text).find((k) => matchingName(k, text).toLowerCase() === text.toLowerCase());
  if (k !== undefined && text.includes(",")) go("dimension", k);
  else go("query", text);
}

function go(...parts) {
  location.hash = address(...parts);
}

/** route returns the function that builds the page of the current address. */
function route() {
  let parts;
  try {
    const path = location.hash.replace(/^#?\/?/, "").replace(/\?.*/, ""); // without settings
    parts = path.split("/").filter(Boolean).map(decodeURIComponent);
  } catch {
    parts = ["malformed"];
  }
  const [kind, ...rest] = parts;
  if (parts.length === 0) return () => summaryPage();
  if (kind === "word" && rest.length === 1) return () => wordPage(...rest);
  if (kind === "dimension" && rest.length === 1) return () => dimensionPage(...rest);
  if (kind === "topic" && rest.length === 1 && model.themes) return () => topicPage(...rest);
  if (kind === "unusual" && rest.length === 0 && model.themes) return () => unusualPage();
  if (kind === "compare" && rest.length >= 2 && rest.length <= 4) return () => comparePage(...rest);
  if (kind === "query" && rest.length === 1) return () => queryPage(...rest);
  if (kind === "dimensions" && rest.length === 0) return () => dimensionsPage();
  if (kind === "map" && (rest.length <= 1 || (rest.length === 2 && rest[0] === "word"))) return () => mapPage(...rest);
  if (kind === "rows" && rest.length <= 1 && (!embedded || embedded.rows)) return () => rowsPage(...rest);
  return () => Promise.reject(new Missing("No page has this address.", []));
}

let shown = 0;

/** show builds and shows the page of the current address. */
async function show() {
  const mine = ++shown;
  const main = document.getElementById("main");
  main.setAttribute("aria-busy", "true");
  let result;
  try {
    await unpack();
    if (!model) {
      const [about, known] = await Promise.all([ask("model"), ask("labels")]);
      model = about;
      for (const answer of Object.values(embedded?.word ?? {})) for (const [id, text] of Object.entries(answer.texts ?? {})) if (text.length > (texts.get(id) ?? "").length) texts.set(id, text);
      useLabels(known);
      document.getElementById("search").hidden = !isSearchable();
      if (!hasDimensions()) document.querySelector("header nav a[href='#/dimensions']").remove();
      if (!embedded ? model.texts : embedded.rows) document.querySelector("header nav a[href='#/map']").href = "#/rows";
      if (model.texts) document.querySelector("header input").placeholder = hasDimensions() ? "words of texts · an id · a dimension   /" : "search the texts   /";
    }
    result = await route()();
  } catch (error) {
    const message = error instanceof TypeError ? "The server doesn't respond. Is overcomplete explore still running?" : error.message;
    result = missingPage(error instanceof Missing ? error : new Missing(message, []));
  }
  if (mine !== shown) return; // the address has changed
  table = result.table;
  document.title = [result.title, model?.name, "overcomplete"].filter(Boolean).join(" · ");
  document.getElementById("brand").textContent = model?.name ?? "overcomplete";
  for (const link of document.querySelectorAll("header nav a, #brand")) {
    if (link.getAttribute("href").replace("rows", "map") === (location.hash.split("?")[0].replace(/^#\/(map|rows)\b.*/, "#/map") || "#/")) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const focused = main.contains(document.activeElement) && document.activeElement.id;
  main.replaceChildren(...h("div", {}, result.content).childNodes);
  main.removeAttribute("aria-busy");
  // Restore the scroll position, or show the top of a new page.
  scrollTo(0, history.state?.y ?? 0);
  if (mine > 1) (document.getElementById(focused || "") ?? main.querySelector("h1")).focus({ preventScroll: true });
}

/** themes maps the settings of the button that changes the theme to their symbols. */
const themes = { system: "◐", light: "☀", dark: "☾" };

/** useTheme sets the theme, and saves it for the next visit if the browser allows that. */
function useTheme(theme) {
  document.documentElement.dataset.theme = theme;
  redrawMaps();
  const button = document.getElementById("theme");
  button.textContent = themes[theme];
  button.ariaLabel = button.title = `Theme: ${theme}`;
  try {
    localStorage.setItem("theme", theme);
  } catch { /* a page in a frame or file may have no storage */ }
}

function keptTheme() {
  try {
    const kept = localStorage.getItem("theme");
    if (Object.hasOwn(themes, kept)) return kept;
  } catch { /* as above */ }
  return "system";
}

useTheme(keptTheme());
document.getElementById("theme").addEventListener("click", () => {
  const names = Object.keys(themes);
  useTheme(names[(names.indexOf(document.documentElement.dataset.theme) + 1) % names.length]);
});

history.scrollRestoration = "manual";
addEventListener("scrollend", () => history.replaceState({ y: scrollY }, ""));
addEventListener("hashchange", show);
addEventListener("keydown", (event) => {
  const typing = event.target.closest?.("input, [role=application]");
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    document.querySelector("header input").focus();
  }
});
document.getElementById("search").append(wordSearch({ label: "Search for a word, several words, a sum of words, a text or a dimension", placeholder: "bank · bank river · king − man + woman   /", queries: true, choose: askFor }));
document.getElementById("main").after(saveBar());
document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault(); // a fragment is the address of a page
  document.querySelector("main h1")?.focus();
});
show();
