// The plots of the report, drawn from the numbers of the page. Text goes in as text only.

const ROW = 22;
const MAX_BARS = 20;
// Widths in print, where two plots share a page; on screen a plot is as wide as its place.
const PRINTED = { pair: 330, alone: 680 };
const pen = document.createElement("canvas").getContext("2d");
let printing = false;

/** An SVG element with attributes; the namespace is that of the drawing. */
function shape(svg, kind, attributes, label) {
  const node = document.createElementNS(svg.namespaceURI, kind);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (label !== undefined) node.textContent = label;
  return node;
}

/** Empty the drawing and set its size; one unit is one pixel, so letters keep their size. */
function blank(svg, height) {
  const figure = svg.parentNode, alone = figure.parentNode.childElementCount === 1;
  const paper = alone ? PRINTED.alone : PRINTED.pair;
  const width = printing ? paper : Math.max(260, Math.round(figure.clientWidth));
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.replaceChildren();
  return width;
}

// Shares of the end in a name without its middle; the first that keeps most names apart is taken.
const END_SHARES = [0.5, 0.7, 0.85, 0.3];

/** A name without its middle if it is wider than `width` pixels: `share` is that of the end, `tag`
 * takes its place. */
function shorten(name, width, share, tag) {
  if (pen.measureText(name).width <= width) return name;
  const letters = [...name], fits = (text) => pen.measureText(text).width <= width;
  let keep = Math.min(letters.length - 1, 120);
  const cut = () => {
    const tail = tag ?? letters.slice(letters.length - Math.floor(share * keep)).join("");
    return letters.slice(0, keep - Math.floor(share * keep)).join("") + "…" + tail;
  };
  while (keep > 2 && !fits(cut())) keep -= 1;
  return cut();
}

/** Names that fit into a width and stay different; those that would not get their place. */
function shortened(names, width) {
  const tried = END_SHARES.map((share) => names.map((name) => shorten(name, width, share)));
  const different = tried.map((each) => new Set(each).size);
  const found = tried[different.indexOf(Math.max(...different))];
  const counts = new Map();
  for (const name of found) counts.set(name, (counts.get(name) ?? 0) + 1);
  return found.map((short, k) => (counts.get(short) > 1 && short !== names[k]
    ? shorten(names[k], width, 0.5, `#${k + 1}`) : short));
}

/** Bars of importance for the given features; `chosen` says which are selected. */
function drawBars(svg, data, order, chosen, format) {
  const height = ROW * order.length + 4;
  const width = blank(svg, height);
  pen.font = `12.5px ${getComputedStyle(svg).fontFamily}`;
  const longest = Math.max(0, ...order.map((i) => pen.measureText(data.feature[i]).width));
  const left = Math.min(longest, width * 0.42) + 12;
  const room = width - left - 58;
  const most = Math.max(...order.map((i) => data.importance[i] ?? 0), 1e-300);
  const names = shortened(order.map((i) => data.feature[i]), left - 12);
  order.forEach((i, k) => {
    const y = ROW * k + 2, value = Math.max(0, data.importance[i] ?? 0);
    const kind = chosen(i) ? "on" : "off";
    const row = shape(svg, "g", { class: kind });
    row.append(
      shape(svg, "title", {}, `${data.feature[i]}: ${format(data.importance[i])}`),
      shape(svg, "text", { x: left - 8, y: y + 14, "text-anchor": "end", class: "name" }, names[k]),
      shape(svg, "rect", {
        x: left, y: y + 2, width: Math.max(1, (room * value) / most), height: ROW - 7, rx: 2,
      }),
      shape(svg, "text", { x: left + (room * value) / most + 6, y: y + 14, class: "value" },
        format(data.importance[i])),
    );
    svg.append(row);
  });
}

/** Axes with ticks; x counts features from 1 to `count`. */
function drawAxes(svg, box, count, ticks, y) {
  for (const [value, label] of ticks) {
    svg.append(
      shape(svg, "line", { x1: box.left, x2: box.right, y1: y(value), y2: y(value), class: "grid" }),
      shape(svg, "text", { x: box.left - 8, y: y(value) + 4, "text-anchor": "end", class: "value" },
        label),
    );
  }
  for (const k of [1, count]) {
    const end = k === 1 ? "start" : "end";
    const x = k === 1 ? box.left : box.right;
    svg.append(shape(svg, "text", { x, y: box.bottom + 20, "text-anchor": end, class: "value" }, k));
  }
  svg.append(shape(svg, "text", {
    x: (box.left + box.right) / 2, y: box.bottom + 20, "text-anchor": "middle", class: "value",
  }, "rank"));
}

/** Dots in two paths, selected and not: quick for thousands. */
function drawDots(svg, order, chosen, x, y) {
  for (const kind of ["off", "on"]) {
    const dots = order.map((i, k) => (chosen(i) === (kind === "on") ? `M${x(k + 1)} ${y(i)}h0` : ""));
    svg.append(shape(svg, "path", { d: dots.join("") || "M0 0", class: `dots ${kind}` }));
  }
}

function frame(svg, height) {
  const width = blank(svg, height);
  return { left: 52, right: width - 12, top: 12, bottom: height - 30 };
}

/** p-values in ascending order on a logarithmic scale, with the line of the level. */
function drawPValues(svg, data, order, total, level, chosen, height) {
  const box = frame(svg, height), count = order.length;
  const log = (p) => Math.log10(Math.max(p, data.floor)); // smaller ones sit at the bottom
  const bottom = Math.round(Math.log10(data.floor));
  const low = Math.min(-2, Math.floor(Math.min(...order.map((i) => log(data.pvalue[i])))));
  const x = (k) => box.left + 8 + ((box.right - box.left - 16) * (k - 1)) / Math.max(1, count - 1);
  const y = (power) => box.top + ((box.bottom - box.top) * power) / low;
  const step = Math.ceil(-low / 5);
  const ticks = [];
  for (let power = 0; power >= low; power -= step) {
    ticks.push([power, power < -2 ? `${power === bottom ? "<" : ""}1e${power}` : String(10 ** power)]);
  }
  drawAxes(svg, box, count, ticks, y);
  const line = order.map((_, k) => {
    const bound = Math.min(1, (level * (k + 1)) / (data.scale * total));
    return `${k ? "L" : "M"}${x(k + 1)} ${y(Math.max(low, log(bound)))}`;
  });
  svg.append(shape(svg, "path", { d: line.join(""), class: "bound" }));
  drawDots(svg, order, chosen, x, (i) => y(log(data.pvalue[i])));
}

/** W by falling size; with one draw, the least selected W as a line. */
function drawW(svg, data, order, chosen, height) {
  const box = frame(svg, height), count = order.length;
  const values = order.map((i) => data.statistic[i]);
  const high = Math.max(...values, 0), low = Math.min(...values, 0);
  const span = high - low || 1;
  const x = (k) => box.left + 8 + ((box.right - box.left - 16) * (k - 1)) / Math.max(1, count - 1);
  const y = (w) => box.top + ((box.bottom - box.top) * (high - w)) / span;
  const ticks = [[0, "0"]];
  for (const w of [high, low]) if (Math.abs(w) > 0.08 * span) ticks.push([w, short(w)]);
  drawAxes(svg, box, count, ticks, y);
  const taken = values.filter((_, k) => chosen(order[k]));
  if (data.draws === 1 && taken.length) {
    const t = y(Math.min(...taken));
    svg.append(shape(svg, "path", { d: `M${box.left} ${t}H${box.right}`, class: "bound" }));
  }
  drawDots(svg, order, chosen, x, (i) => y(data.statistic[i]));
}
