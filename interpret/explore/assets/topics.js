"use strict";

// Topics, their subtopics, and unusual rows.

let topicTree; // the answer of ask("topics"), with all topics by id

/** loadTopics returns the tree of topics. Each topic has its subtopics as children, and its place in lists of its kind. */
async function loadTopics() {
  if (topicTree) return topicTree;
  const tree = await ask("topics");
  const topic = new Map();
  for (const kind of ["topics", "subtopics"]) tree[kind].forEach((t, place) => {
    Object.assign(t, { kind, place, children: [], above: topic.get(t.parent) });
    topic.set(t.id, t);
    t.above?.children.push(t);
  });
  return (topicTree = { ...tree, topic });
}

/** pathOf returns a topic and the topics that contain it, the broadest first. */
const pathOf = (topic) => (topic ? [...pathOf(topic.above), topic] : []);

/** ofTopic returns the values or counts of a topic in a column. */
const ofTopic = (column, topic) => column[topic.kind][topic.place];

/** loadRows returns the map of rows. Labels of topics name its regions. The field broad of a point is its broadest region. */
async function loadRows() {
  const rows = await ask("rows");
  const named = (region) => namedTopics.get(region.topic)?.name;
  const regions = rows.regions.map((region) => (named(region) && region.words.length > 0 ? { ...region, words: [named(region)] } : region));
  const broad = [];
  regions.forEach(({ parent }, r) => broad.push(parent < 0 ? r : broad[parent])); // a topic precedes its subtopics
  const points = rows.words.map((word, at) => ({ word, at, row: rows.rows[at], x: rows.x[at] / 65535, y: rows.y[at] / 65535, region: rows.region[at], broad: broad[rows.region[at]] ?? -1 }));
  return { ...rows, points, regions };
}

/** openRow opens the page of a row or, if it has none, the page of its topic. */
function openRow(p, regions) {
  if (has("word", p.word)) go("word", p.word);
  else if (p.region >= 0) go("topic", regions[p.region].topic);
}

/** topicLink shows the label of a topic, with a link to its page. */
const topicLink = (topic) => h("a", { class: "name", href: address("topic", topic.id) }, h("bdi", {}, topicName(topic)));

/** pathLinks shows links to the topics of a path. */
const pathLinks = (path) => path.map((topic, i) => [i > 0 && " › ", topicLink(topic)]);

/** rowItem shows a text or a word in a list, and more content. */
const rowItem = (word, excerpts, words, ...more) => (model.texts ? textItem(word, excerpts?.[word], words, ...more) : h("li", {}, wordLink(word), h("div", { class: "about" }, more)));

let chosenColumn, chosenCourse; // the column whose values topicsList shows, and the column of dates

const valueName = (value) => (value === "" ? "–" : visible(value));

/** valuesBar draws the shares of the most frequent values of a column in a topic, and names the first. */
function valuesBar(values) {
  if (values.length === 0) return null;
  let x = 0;
  const parts = values.map(({ share }, i) => {
    const rect = svg("rect", { x: `${100 * x}%`, width: `${100 * share}%`, height: "100%", class: "positive", "fill-opacity": 1 / (i + 1) });
    x += share;
    return rect;
  });
  const [first] = values;
  return h("div", { class: "about", title: values.map((v) => `${valueName(v.value)} ${percent(v.share)}`).join(", ") },
    svg("svg", { class: "bar", "aria-hidden": "true" }, parts), h("bdi", {}, valueName(first.value)), h("span", { class: "value" }, percent(first.share)));
}

/** courseBar draws the course of a topic, and names its largest period. */
function courseBar({ periods }, counts, count) {
  const most = largestOf(counts);
  if (counts[most] === 0) return null;
  return h("div", { class: "about" }, sparkline(counts), `most in ${periods[most].value}`, h("span", { class: "value" }, percent(counts[most] / count)));
}

/** courseOf shows the course of a topic as a chart and as a list. Lines mark the course of all rows. */
function courseOf(course, counts, count) {
  const { name, by, periods } = course;
  const all = periods.reduce((sum, p) => sum + p.count, 0);
  const dated = counts.reduce((sum, n) => sum + n, 0);
  if (dated === 0) return null;
  const expected = periods.map((p) => (dated * p.count) / all);
  const most = Math.max(...counts, ...expected);
  return [h("h2", {}, "By ", by, h("small", {}, " ", h("bdi", {}, visible(name)))),
    timeline(periods, counts, expected, { unit: unit(), label: `${unit()}s by ${by}` }),
    h("p", { class: "note" }, `The line marks the course of all ${unit()}s.`, dated < count && ` ${plural(count - dated, unit())} without a date.`),
    h("details", {}, h("summary", {}, "As a list"), h("ul", { class: "bars parts" }, periods.map((p, i) =>
      h("li", {}, h("span", {}, p.after_gap && "… ", p.value), bar(counts[i], 0, most, { mark: expected[i] }), h("span", { class: "value" }, whole(counts[i]))))))];
}

/** topicsPage is the summary of a model with topics. */
async function topicsPage() {
  const list = h("div", {});
  const draw = (t) => list.replaceChildren(...h("div", {}, topicsList(t)).childNodes);
  if (topicTree) draw(topicTree);
  else {
    list.append(h("p", { class: "lead", "data-loading": "" }, "Computing topics…"));
    loadTopics().then(draw);
  }
  return { title: "", content: [heading(`Topics of ${plural(model.words, unit())}`), list, !embedded && h("details", { class: "stop" }, h("summary", {}, "About the model"), modelSection())], table: topicsTable };
}

/** topicsTable returns all topics as rows of a table. */
async function topicsTable() {
  const t = await loadTopics();
  return [["id", "parent", "label", "share", `${unit()}s`], ...[...t.topics, ...t.subtopics].map((topic) => [topic.id, topic.above?.id ?? "", topicName(topic), topic.share.toFixed(5), topic.count])];
}

const openTopics = new Set(); // ids of the topics whose subtopics the first page shows

function topicsList(t) {
  const most = Math.max(...t.topics.map((topic) => topic.share));
  chosenColumn = t.columns.some((c) => c.name === chosenColumn) ? chosenColumn : t.columns[0]?.name;
  chosenCourse = t.courses.some((c) => c.name === chosenCourse) ? chosenCourse : t.courses[0]?.name;
  const colours = new Map(); // of broad topics on the map
  const list = h("div", {});
  /** item shows a topic. Its subtopics unfold in place. */
  function item(topic) {
    const column = t.columns.find((c) => c.name === chosenColumn);
    const course = t.courses.find((c) => c.name === chosenCourse);
    const [example] = topic.examples.map((e) => marked(e.text ?? "", topic.words)).sort((a, b) => b.length - a.length); // with most marks
    const broad = !topic.above;
    return h("li", { class: broad && `region${colours.get(topic.id)}`, "data-topic": topic.id },
      h(broad ? "h3" : "h4", {}, broad && h("span", { class: "swatch" }), topicLink(topic), proposal(topic)),
      h("div", { class: "about" }, bar(topic.share, 0, most), h("span", { class: "count" }, `${percent(topic.share)}, ${plural(topic.count, unit())}`)),
      course && courseBar(course, ofTopic(course, topic), topic.count),
      column && valuesBar(ofTopic(column, topic)),
      example && model.texts && h("blockquote", { class: "excerpt", dir: "auto" }, example),
      topic.children.length > 0 && unfolding(topic));
  }
  function unfolding(topic) {
    const within = h("ol", { class: "topics" });
    const details = h("details", { open: openTopics.has(topic.id), ontoggle: unfold },
      h("summary", {}, `${plural(topic.children.length, "subtopic")}: `, topic.children.map((sub, i) => [i > 0 && "\u00a0· ", h("bdi", {}, topicName(sub))])), within);
    function unfold() {
      openTopics[details.open ? "add" : "delete"](topic.id);
      if (details.open && within.children.length === 0) within.append(...topic.children.map(item));
    }
    if (details.open) unfold();
    return details;
  }
  const draw = () => list.replaceChildren(h("ol", { class: "topics" }, t.topics.map(item)));
  draw();
  const map = rowsMap(({ regions }) => {
    for (const region of regions) colours.set(region.topic, region.colour);
    list.querySelectorAll(":scope > .topics > li").forEach((row, i) => row.setAttribute("class", `region${colours.get(t.topics[i].id)}`));
  });
  const select = (all, chosen, choose) => h("select", { onchange: (event) => { choose(event.currentTarget.value); draw(); } }, all.map((c) => h("option", { value: c.name, selected: c.name === chosen }, visible(c.name), c.by && ` by ${c.by}`)));
  const notes = [
    t.blank > 0 && `${plural(t.blank, "empty text")}`,
    t.outliers.length > 0 && `the ${plural(t.outliers.length, unit())} least like the others`,
  ].filter(Boolean);
  const noted = h("ul", { class: "plain" }, notes.map((note) => h("li", {}, note)));
  ask("duplicates").then(({ repeated }) => {
    if (repeated > 0) noted.prepend(h("li", {}, `${plural(repeated, unit())} almost equal to another`));
  });
  return [
    h("p", { class: "lead" }, `${plural(t.topics.length, "topic")}, the largest first. Each opens to narrower ones.`),
    h("div", { class: "reading" },
      h("section", {}, h("h2", { class: "sr" }, "Topics"), h("div", { class: "tools" },
        t.columns.length > 0 && h("label", { class: "note" }, "By column ", select(t.columns, chosenColumn, (name) => (chosenColumn = name))),
        t.courses.length > 0 && h("label", { class: "note" }, "Over time ", select(t.courses, chosenCourse, (name) => (chosenCourse = name)))), list),
      h("section", { class: "aside" },
        map,
        notes.length > 0 && [h("h2", {}, `Unusual ${unit()}s`), noted, h("p", {}, h("a", { href: address("unusual") }, "Show them"))],
        !embedded && [h("h2", {}, "More"), h("p", {}, h("a", { href: address("dimensions") }, `${whole(model.live)} dimensions`))],
        embedded && embeddedWords().length > 0 && [h("h2", {}, "Also on this page"), h("ul", { class: "plain" }, embeddedWords().map((word) => h("li", {}, wordLink(word))))])),
  ];
}

/** rowsMap draws a small map of rows, coloured by topic or region. It passes the data to loaded. */
function rowsMap(loaded = () => {}) {
  const map = h("div", { "data-loading": "" }, h("p", { class: "note" }, "Computing the map…"));
  loadRows().then((rows) => {
    const { points, regions } = rows;
    loaded(rows);
    const counts = regions.map(() => 0);
    for (const p of points) {
      p.radius = clamp(40 / Math.sqrt(points.length), 1, 4);
      p.colour = regions[p.region]?.colour ?? grey;
      counts[p.broad]++;
    }
    map.removeAttribute("data-loading");
    map.replaceChildren(mapView({
      points, regions: regions.filter((r, i) => r.parent < 0 && 100 * counts[i] >= points.length), still: true, kind: unit(), key: "row", many: 0, state: {},
      card: (p) => [h("strong", {}, visible(textOf(p.word).slice(0, 200))), rowFacts(p, regions)],
      open: (p) => openRow(p, regions),
      load: loadTexts,
    }).content);
  });
  return [
    h("h2", {}, `Map of ${unit()}s`), map,
    h("p", { class: "note" }, `Similar ${unit()}s are close; colours are ${model.themes ? "topics" : "regions"}. `, h("a", { href: address("rows") }, "Larger map")),
  ];
}

/** topicPage shows a topic: its subtopics, typical rows, dimensions and values of columns. */
async function topicPage(id) {
  const [t, answer] = await Promise.all([loadTopics(), ask("topic", "topic", id)]);
  const topic = t.topic.get(Number(id));
  const { above, children, words } = topic;
  const siblings = above?.children ?? t.topics;
  const at = siblings.indexOf(topic);
  const step = (i) => (i in siblings ? address("topic", siblings[i].id) : null);
  const shareOf = (column, value) => column.all.find((v) => v.value === value)?.share;
  return {
    title: topicName(topic),
    content: [
      h("nav", { class: "steps", "aria-label": "topics" }, h("a", { href: step(at - 1), rel: "prev" }, "← larger"), above && h("span", {}, "in: ", pathLinks(pathOf(above))), h("a", { href: step(at + 1), rel: "next" }, "smaller →")),
      h("h1", { tabindex: -1, class: "eyebrow" }, above ? "subtopic" : "topic"),
      h("p", { class: "title" }, h("bdi", {}, topicName(topic))),
      proposal(topic) && h("p", { class: "note" }, "A program proposed this label. To keep it, save it or change it."),
      h("p", { class: "lead" }, `${plural(topic.count, unit())}, ${percent(topic.share)} of all`, above && `, ${percent(topic.count / above.count)} of the topic above`, "."),
      topic.words.length > 0 && labelEditor("topic", topic.id, topic.label, show),
      h("div", { class: "reading" },
        h("section", {},
          children.length > 0 && h("section", {}, h("h2", {}, "Subtopics"), h("ul", { class: "bars parts" }, children.map((sub) =>
            h("li", {}, topicLink(sub), bar(sub.count, 0, children[0].count), h("span", { class: "value" }, whole(sub.count)))))),
          t.courses.map((course) => courseOf(course, ofTopic(course, topic), topic.count)),
          h("h2", {}, `Typical ${unit()}s`),
          folded(answer.top, 8, (some) => h("ol", { class: "excerpts" }, some.map((e) => rowItem(e.word, { [e.word]: e.text }, words, e.alike > 0 && h("span", { class: "note" }, `and ${whole(e.alike)} that quote it or are like it`)))))),
        h("section", { class: "aside" },
          t.columns.map((column) => {
            const values = ofTopic(column, topic);
            return values.length > 0 && [h("h2", {}, h("bdi", {}, visible(column.name))), h("ul", { class: "bars parts" }, values.map((v) =>
              h("li", {}, h("bdi", {}, valueName(v.value)), bar(v.share, 0, 1, { mark: shareOf(column, v.value) }), h("span", { class: "value" }, percent(v.share)))))];
          }),
          t.columns.length > 0 && h("p", { class: "note" }, `The line marks the share among all ${unit()}s.`),
          answer.matching.length > 0 && hasDimensions() && [h("h2", {}, "Dimensions"), matchingList(answer.matching, answer.rows)]))],
  };
}

/** matchingList shows dimensions that are more frequent in n rows than by chance. */
const matchingList = (matching, n) => h("ul", { class: "bars parts" }, matching.map((m) =>
  h("li", {}, nameLink(m.dimension, strongPole(m.dimension)), bar(m.words, 0, n, { mark: m.expected }), h("span", { class: "value" }, percent(m.words / n)))));

/** unusualPage lists near-duplicates and outliers. */
async function unusualPage() {
  const [t, { pairs, repeated, texts: excerpts }] = await Promise.all([loadTopics(), ask("duplicates")]);
  return {
    title: `unusual ${unit()}s`,
    content: [
      heading(`Unusual ${unit()}s`),
      h("p", { class: "lead" }, [repeated > 0 && plural(repeated, "near-duplicate"), t.blank > 0 && plural(t.blank, "empty text")].filter(Boolean).join(" · ") || "No near-duplicates."),
      h("div", { class: pairs.length > 0 && "halves" },
        pairs.length > 0 && h("section", {}, h("h2", {}, "Near-duplicates", h("small", {}, " cosine of codes, at least 0.95")),
          h("ol", { class: "excerpts" }, pairs.map((pair) =>
            h("li", {}, h("ol", { class: "pair" }, pair.words.map((word) => rowItem(word, excerpts, []))), h("div", { class: "about" }, h("span", { class: "value" }, pair.cosine.toFixed(2)), pair.words.every((word) => hasCode("word", word)) && h("a", { class: "compare", href: address("compare", ...pair.words) }, "compare")))))),
        h("section", {}, h("h2", {}, "Outliers", h("small", {}, " cosine with the nearest topic")),
          h("ol", { class: "excerpts" }, t.outliers.map((o) => rowItem(o.word, t.texts, [], h("span", { class: "value" }, o.cosine.toFixed(2))))))),
    ],
  };
}
