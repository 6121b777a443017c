"use strict";

// Steering: nearest rows with larger or smaller values of some dimensions.

/** listedSliders is the initial number of sliders. */
const listedSliders = 5;

/**
 * steering shows a slider for each of the strongest dimensions of a query, and the rows with the largest scores.
 * The score of a row is its cosine plus, for each dimension, the value of the slider times the row's value at that
 * pole, for codes of norm 1.
 */
function steering(query, active) {
  if (embedded || active.length === 0) return null;
  const amounts = new Map();
  const sliders = h("div", { class: "sliders" });
  const list = h("ol", { class: "excerpts", "aria-live": "polite", "aria-label": "Steered" });
  let asked = 0;
  async function update() {
    const mine = ++asked;
    const steer = [...amounts].filter(([, amount]) => amount !== 0).map(([k, amount]) => `${k}:${amount}`).join();
    const { nearest, texts: excerpts } = steer ? await ask("query", `steer=${steer}&query`, query) : { nearest: [] };
    if (mine !== asked) return; // a slider has moved
    list.replaceChildren(...nearest.map((row) => {
      const score = total(row.steered, (part) => part.part) + row.cosine;
      const terms = row.steered.map(({ dimension, part }) => ` ${part < 0 ? "−" : "+"} ${Math.abs(part).toFixed(2)} ${nameText(dimension)}`);
      return textItem(row.word, excerpts?.[row.word], [], bar(score, 0, 1), h("span", { class: "value" }, signed(score, 2)), ` = ${signed(row.cosine, 2)}`, terms.join(""));
    }));
  }
  function add(k, value) {
    if (amounts.has(k)) return;
    amounts.set(k, 0);
    const pole = value < 0 ? -1 : 1; // a negative pole is stronger at smaller values
    sliders.append(slider(nameLink(k, value), { min: -1, say: (amount) => signed(amount, 2), change: (amount) => { amounts.set(k, pole * amount); update(); } }));
  }
  const names = `dimensions-${++searches}`;
  const other = h("input", { type: "text", list: names, placeholder: "steer by another dimension", "aria-label": "Steer by another dimension" });
  other.addEventListener("change", () => {
    const k = /^\d{1,9}(?= |$)/.exec(other.value)?.[0];
    if (!(k < model.dimensions.length)) return;
    add(Number(k), strongPole(k));
    other.value = "";
  });
  const opened = () => {
    for (const { dimension, value } of active.slice(0, listedSliders)) add(dimension, value);
    other.after(h("datalist", { id: names }, model.dimensions.map((_, k) => h("option", { value: `${k} ${nameText(k, strongPole(k))}` }))));
  };
  const details = h("details", { class: "steering" },
    h("summary", {}, "Steer by dimensions"),
    h("p", { class: "note" }, "The score is the cosine plus, for each dimension, the value of its slider times the row’s value in it. Codes have norm 1."),
    sliders, other, list);
  details.addEventListener("toggle", opened, { once: true });
  return details;
}
