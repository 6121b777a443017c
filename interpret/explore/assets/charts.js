"use strict";

// Bars and histograms.

/**
 * bar draws a value as a bar from zero, on a scale from low to high that contains zero. The colour is a CSS
 * class. The mark is a second value, drawn as a line.
 */
function bar(value, low, high, { colour, mark } = {}) {
  const x = (v) => (100 * (v - low)) / (high - low || 1);
  const line = (v) => svg("line", { x1: `${x(v)}%`, x2: `${x(v)}%`, y1: "-15%", y2: "115%" });
  return svg(
    "svg",
    { class: "bar", "aria-hidden": "true" },
    svg("rect", {
      x: `${x(Math.min(value, 0))}%`,
      width: `${Math.abs(x(value) - x(0))}%`,
      height: "100%",
      rx: 2,
      class: colour ?? (value < 0 ? "negative" : "positive"),
    }),
    low < 0 && line(0),
    mark !== undefined && line(mark),
  );
}

/** histogram draws the counts of values between from and to. The axis of counts is logarithmic. */
function histogram({ from, to, counts }, { unit, label, whole: integers }) {
  const width = 480, height = 150, bottom = 22, top = 16;
  const most = Math.max(...counts);
  const step = width / counts.length;
  const y = (n) => top + (height - top - bottom) * (1 - Math.log1p(n) / Math.log1p(most));
  const ticks = [1, 10, 100, 1e3, 1e4, 1e5, 1e6].filter((n) => n < 0.7 * most);
  const edge = (i) => from + ((to - from) * i) / counts.length;
  const range = (i) => {
    if (!integers) return `${decimal(edge(i))} to ${decimal(edge(i + 1))}`;
    const [first, last] = [Math.round(edge(i)), Math.round(edge(i + 1)) - 1];
    return first === last ? whole(first) : `${whole(first)} to ${whole(last)}`;
  };
  const ends = integers ? [whole(from), whole(Math.round(to) - 1)] : [decimal(from), decimal(to)];
  const peak = counts.indexOf(most);
  return svg(
    "svg",
    { class: "histogram", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${label}: from ${ends[0]} to ${ends[1]}, most often ${range(peak)}` },
    ticks.map((n) => svg("line", { class: "tick", x1: 0, x2: width, y1: y(n), y2: y(n) })),
    counts.map((n, i) =>
      svg(
        "g",
        {},
        svg("rect", { x: i * step + 0.75, width: Math.max(step - 1.5, 0.5), y: y(n), height: height - bottom - y(n), class: !integers && edge(i + 1) <= 0 ? "negative" : "positive" }),
        svg("rect", { x: i * step, width: step, y: 0, height, class: "target" }, svg("title", {}, `${range(i)}: ${plural(n, unit)}`)),
      ),
    ),
    ticks.map((n) => svg("text", { class: "tick", x: width, y: y(n) - 2, "text-anchor": "end" }, whole(n))),
    svg("line", { x1: 0, x2: width, y1: height - bottom, y2: height - bottom }),
    svg("text", { x: 0, y: height - 5 }, ends[0]),
    svg("text", { x: width, y: height - 5, "text-anchor": "end" }, ends[1]),
    // Keep the text within the frame.
    svg("text", { x: (peak + (peak < counts.length / 3 ? 0 : peak < (2 * counts.length) / 3 ? 0.5 : 1)) * step, y: 13, "text-anchor": peak < counts.length / 3 ? "start" : peak < (2 * counts.length) / 3 ? "middle" : "end" }, plural(most, unit)),
  );
}

/** largestOf returns the index of the largest number. */
const largestOf = (counts) => counts.indexOf(Math.max(...counts));

/** sparkline draws a bar for each number, without text. */
const sparkline = (counts) => svg("svg", { class: "sparkline", viewBox: `0 0 ${counts.length} 10`, preserveAspectRatio: "none", "aria-hidden": "true" },
  counts.map((n, i) => svg("rect", { x: i + 0.1, width: 0.8, y: 10 - (10 * n) / Math.max(...counts, 1), height: (10 * n) / Math.max(...counts, 1), class: "positive" })));

/** timeline draws the counts of periods, with lines at the expected counts. An ellipsis marks periods that are left out. */
function timeline(periods, counts, expected, { unit, label }) {
  const width = 480, height = 150, bottom = 22, top = 16;
  const most = Math.max(...counts, ...expected);
  const step = width / counts.length;
  const y = (n) => top + (height - top - bottom) * (1 - n / most);
  const peak = largestOf(counts);
  const at = (peak + 0.5) / counts.length;
  const names = periods.map((p) => p.value);
  return svg("svg", { class: "histogram", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${label}: from ${names[0]} to ${names.at(-1)}, most in ${names[peak]}, ${plural(counts[peak], unit)}` },
    counts.map((n, i) => svg("g", {},
      svg("rect", { x: (i + 0.05) * step, width: 0.9 * step, y: y(n), height: height - bottom - y(n), class: "positive" }),
      svg("line", { class: "mark", x1: i * step, x2: (i + 1) * step, y1: y(expected[i]), y2: y(expected[i]) }),
      periods[i].after_gap && svg("text", { x: i * step, y: height - bottom - 4, "text-anchor": "middle" }, "…"),
      svg("rect", { x: i * step, width: step, y: 0, height, class: "target" }, svg("title", {}, `${names[i]}: ${plural(n, unit)}, expected ${decimal(expected[i])}`)))),
    svg("line", { x1: 0, x2: width, y1: height - bottom, y2: height - bottom }),
    svg("text", { x: 0, y: height - 5 }, names[0]),
    svg("text", { x: width, y: height - 5, "text-anchor": "end" }, names.at(-1)),
    svg("text", { x: at * width, y: 13, "text-anchor": at < 1 / 3 ? "start" : at < 2 / 3 ? "middle" : "end" }, `${names[peak]}: ${plural(counts[peak], unit)}`));
}
