"use strict";

// Steering: nearest rows with larger or smaller values of some dimensions.

/** listedSliders is the initial number of sliders. */
const listedSliders = 5;

/**
 * steering shows a slider for each of the strongest dimensions of a query, above a list of its nearest rows. While a slider
 * isn't zero, the list shows the rows with the largest scores instead. The score of a row is its cosine plus, for each
 * dimension, the value of the slider times the row's value at that pole, for codes of norm 1. The address has the values:
 * ?steer=17:0.5.
 */
function steering(query, active, nearest) {
  const list = h("div", {}, nearest);
  if (embedded || active.length === 0) return list;
  const amounts = new Map();
  const sliders = h("div", { class: "sliders" });
  const [page] = location.hash.split("?");
  const initial = new Map((given().get("steer") ?? "").split(",").map((item) => item.split(":").map(Number)).filter(([k, amount]) => k in model.dimensions && Math.abs(amount) <= 1));
  let asked = 0;
  async function update() {
    const mine = ++asked;
    const steer = [...amounts].filter(([, amount]) => amount !== 0).map(([k, amount]) => `${k}:${amount}`).join();
    if (location.hash.split("?")[0] === page) history.replaceState(history.state, "", page + (steer && `?steer=${steer}`));
    if (!steer) return list.replaceChildren(...h("div", {}, nearest).childNodes);
    const { nearest: rows, texts: excerpts } = await ask("query", `steer=${steer}&query`, query);
    if (mine !== asked) return; // a slider has moved
    const scores = rows.map((row) => total(row.steered, (part) => part.part) + row.cosine);
    list.replaceChildren(h("ol", { class: "excerpts" }, rows.map((row, i) => {
      const terms = row.steered.map(({ dimension, part }) => ` ${part < 0 ? "−" : "+"} ${Math.abs(part).toFixed(2)} ${nameText(dimension)}`);
      return textItem(row.word, excerpts?.[row.word], [], bar(scores[i], Math.min(0, ...scores), Math.max(1, ...scores)), h("span", { class: "value" }, signed(scores[i], 2)), ` = ${signed(row.cosine, 2)}`, terms.join(""));
    })));
  }
  function add(k, value, amount = 0) {
    if (amounts.has(k)) return;
    const pole = value < 0 ? -1 : 1; // a negative pole is stronger at smaller values
    amounts.set(k, amount);
    sliders.append(slider(nameLink(k, value), { value: pole * amount, min: -1, say: (amount) => signed(amount, 2), change: (amount) => { amounts.set(k, pole * amount); update(); } }));
  }
  const names = `dimensions-${++searches}`;
  const other = h("input", { type: "text", list: names, placeholder: "steer by another dimension", "aria-label": "Steer by another dimension" });
  const unknown = h("p", { class: "note", role: "alert" });
  other.addEventListener("change", () => {
    const wanted = other.value.trim();
    const number = /^\d{1,9}(?= |$)/.exec(wanted)?.[0];
    const k = number in model.dimensions ? Number(number) : wanted && matchingDimensions(wanted)[0];
    unknown.textContent = wanted && k === undefined ? `No dimension’s label contains “${wanted}”.` : "";
    if (!wanted || k === undefined) return;
    add(k, strongPole(k));
    other.value = "";
  });
  const opened = () => {
    for (const [k, amount] of initial) add(k, active.find(({ dimension }) => dimension === k)?.value ?? strongPole(k), amount);
    for (const { dimension, value } of active.slice(0, listedSliders)) add(dimension, value);
    other.after(h("datalist", { id: names }, model.dimensions.map((_, k) => h("option", { value: `${k} ${nameText(k, strongPole(k))}` }))));
    if (initial.size > 0) update();
  };
  const details = h("details", { class: "steering" },
    h("summary", {}, "Steer by dimensions"),
    h("p", { class: "note" }, "The score is the cosine plus, for each dimension, the value of its slider times the row’s value in it. Codes have norm 1."),
    sliders, other, unknown);
  details.addEventListener("toggle", opened, { once: true });
  details.open = initial.size > 0;
  list.setAttribute("aria-live", "polite");
  return [details, list];
}
