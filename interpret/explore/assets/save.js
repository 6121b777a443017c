"use strict";

// Files of a view: its lists as CSV, its picture as SVG and PNG.

let table; // returns the table of the view, if it has one

/** csv returns rows as CSV for spreadsheets, with a byte order mark. No text becomes a formula. */
const csv = (rows) => "\ufeff" + rows.map((row) => row.map((cell) => {
  const text = String(cell).replace(/\s+/g, " ");
  const safe = typeof cell === "string" && /^[=+\-@]/.test(text) && isNaN(text) ? "'" + text : text;
  return /[",]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}).join(",") + "\r\n").join("");

/** tableOf returns the table of a view as CSV, or else its lists and facts, with their headings. */
async function tableOf(main) {
  const rows = [];
  if (table) return csv(await table());
  let section = "";
  const text = (element) => element.textContent.replace(/\s+/g, " ").trim();
  for (const element of main.querySelectorAll("h2, li, dl > div")) {
    if (element.matches("h2")) section = text(element);
    else if (element.offsetParent) rows.push([section, ...[...element.children].map(text).filter(Boolean)]);
  }
  return csv([["section", "content"], ...rows]);
}

/** pictureOf converts the visible text, boxes and charts of a view to plain SVG. It replaces characters that XML forbids. */
function pictureOf(main) {
  const frame = main.getBoundingClientRect();
  const shapes = [];
  const within = (box, clip) => box.width > 0 && box.height > 0 && box.right > clip.left && box.left < clip.right && box.bottom > clip.top && box.top < clip.bottom;
  const place = (box) => ({ x: (box.left - frame.left).toFixed(1), y: (box.top - frame.top).toFixed(1), width: box.width.toFixed(1), height: box.height.toFixed(1) });
  const paint = (style) => ({ fill: style.fill, "fill-opacity": style.fillOpacity, stroke: style.stroke, "stroke-width": style.strokeWidth, "paint-order": style.paintOrder, "text-anchor": style.textAnchor, "font-family": style.fontFamily, "font-size": style.fontSize, "font-weight": style.fontWeight });
  function copy(drawing, box) {
    const clone = drawing.cloneNode(true);
    const originals = [...drawing.querySelectorAll("*")];
    [...clone.querySelectorAll("*")].forEach((element, i) => {
      const style = getComputedStyle(originals[i]);
      if (style.display === "none" || element.matches("title, .target")) return element.remove();
      for (const [name, value] of Object.entries(paint(style))) element.setAttribute(name, value);
      element.removeAttribute("class");
    });
    for (const name of [...clone.getAttributeNames()]) if (name !== "viewBox") clone.removeAttribute(name);
    for (const [name, value] of Object.entries(place(box))) clone.setAttribute(name, value);
    shapes.push(clone);
  }
  function visit(node, clip) {
    if (node.nodeType === Node.TEXT_NODE) {
      const style = getComputedStyle(node.parentElement);
      // Word by word, because lines break on the screen.
      for (const { 0: word, index } of node.data.matchAll(/\S+/g)) {
        const range = document.createRange();
        range.setStart(node, index);
        range.setEnd(node, index + word.length);
        const box = range.getBoundingClientRect();
        if (!within(box, clip)) continue;
        const size = parseFloat(style.fontSize);
        shapes.push(svg("text", { x: (box.left - frame.left).toFixed(1), y: (box.top - frame.top + box.height / 2 + 0.35 * size).toFixed(1), fill: style.color, "font-family": style.fontFamily, "font-size": style.fontSize, "font-weight": style.fontWeight, "font-style": style.fontStyle }, word));
      }
      return;
    }
    if (node.nodeType !== Node.ELEMENT_NODE || node.matches(".sr, input, select, button, .combobox, .slider, .zoom, [hidden]")) return;
    const box = node.getBoundingClientRect();
    if (node.matches("svg")) return within(box, clip) && copy(node, box);
    if (node.matches("canvas")) return within(box, clip) && shapes.push(svg("image", { ...place(box), href: node.toDataURL() }));
    const style = getComputedStyle(node);
    const inner = style.overflowY === "visible" ? clip : box;
    if (within(box, clip) && (style.backgroundColor !== "rgba(0, 0, 0, 0)" || parseFloat(style.borderTopWidth) > 0)) shapes.push(svg("rect", { ...place(box), rx: parseFloat(style.borderTopLeftRadius) || 0, fill: style.backgroundColor, stroke: parseFloat(style.borderTopWidth) > 0 ? style.borderTopColor : "none" }));
    for (const child of node.childNodes) visit(child, inner);
  }
  visit(main, frame);
  const paper = svg("rect", { width: frame.width, height: frame.height, fill: getComputedStyle(document.body).backgroundColor });
  const picture = svg("svg", { viewBox: `0 0 ${frame.width} ${frame.height}`, width: frame.width, height: frame.height }, paper, shapes);
  return new XMLSerializer().serializeToString(picture).replace(/[^\t\n\r -\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, "\ufffd");
}

/** painted converts an SVG picture to PNG, at twice the resolution of the screen. */
async function painted(picture) {
  const image = new Image();
  image.src = "data:image/svg+xml," + encodeURIComponent(picture);
  await image.decode();
  const canvas = h("canvas", { width: 2 * image.width, height: 2 * image.height });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => canvas.toBlob(done));
}

/** saveBar shows buttons that save the view in main as a file, named after the page's title. */
function saveBar() {
  const main = document.getElementById("main");
  const save = (ending, type, make) => async () => {
    const made = await make();
    const url = URL.createObjectURL(made instanceof Blob ? made : new Blob([made], { type }));
    h("a", { href: url, download: document.title.split(" · ").slice(0, -1).join(" ").replace(/[^\p{L}\p{N}]+/gu, "-").slice(0, 80) + ending }).click();
    URL.revokeObjectURL(url);
  };
  const button = (text, onclick) => h("button", { type: "button", onclick }, text);
  return h("footer", { class: "save", "aria-label": "Save this view" }, "Save this view:",
    button("Table", save(".csv", "text/csv", () => tableOf(main))),
    button("Picture", save(".png", "image/png", () => painted(pictureOf(main)))),
    button("SVG", save(".svg", "image/svg+xml", () => pictureOf(main))),
    button("Print", () => print()));
}
