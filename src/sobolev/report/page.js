// The moving parts of the report. Names and texts enter the page as textContent, never as HTML.

const $ = (id) => document.getElementById(id);
const data = JSON.parse($("data").textContent);
const total = data.feature.length;
const everyone = Array.from({ length: total }, (_, i) => i);
const PAGE = total <= 30 ? 30 : 20, MORE = 200;
const NBSP = "\u00a0";
const state = { level: data.fdr, sort: "rank", down: false, limit: PAGE };

// ---- numbers as text

function decimal(value, digits) {
  if (value === null) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  const text = size < 0.001 ? size.toExponential(1) : size >= 1000 ? size.toPrecision(4)
    : size >= 10 ? size.toFixed(2) : size.toFixed(digits);
  return (value < 0 ? "−" : "") + text;
}
const fixed = (value) => (value === null ? "–" : value.toFixed(3).replace(/^-(?=0\.000)/, "").replace("-", "−"));
const short = (value) => decimal(value, 2);
const number = (value) => decimal(value, 4);
const percent = (level) => `${Number((100 * level).toPrecision(6))}${NBSP}%`;
const count = (n) => n.toLocaleString("en-US");

// ---- what is selected at the level of the slider

/** At the level of the run its own answer; elsewhere what the q-values say. */
function chosen(i) {
  if (state.level === data.fdr) return data.selected[i];
  return data.qvalue[i] !== null && data.qvalue[i] <= state.level;
}

function headline(names) {
  const level = data.fdr === null ? "by importance" : `at FDR ${percent(state.level)}`;
  if (!names.length) return [`None of ${total} features selected ${level}`, ""];
  const rest = names.length > 8 ? ` and ${names.length - 8} more` : "";
  return [`${names.length} of ${total} features ${level}`, `: ${names.slice(0, 8).join(", ")}${rest}`];
}

function showAnswer() {
  const picked = everyone.filter(chosen);
  const [begin, names] = headline(picked.map((i) => data.feature[i]));
  $("count").textContent = begin;
  $("names").textContent = names;
  $("unsure").textContent = state.level === data.fdr ? data.unsure : "";
  $("nothing").hidden = picked.length > 0;
  if (data.fdr === null) return;
  $("level").textContent = percent(state.level);
  $("slider").setAttribute("aria-valuetext", percent(state.level));
  $("moved").hidden = state.level === data.fdr;
  const judged = everyone.filter((i) => data.qvalue[i] !== null).length;
  const parts = [`${count(picked.length)} selected`, `${count(judged - picked.length)} not selected`];
  if (judged < total) parts.push(`${count(total - judged)} not tested`);
  $("counts").textContent = parts.join(" · ");
}

// ---- plots

const byImportance = [...everyone].sort((a, b) => (data.importance[b] ?? -1) - (data.importance[a] ?? -1));
const bars = barOrder();
const points = pointOrder();

/** What the run selected and the next by importance; fixed, so that bars do not jump. */
function barOrder() {
  const found = byImportance.filter((i) => data.selected[i]).slice(0, MAX_BARS - 6);
  const others = byImportance.filter((i) => !found.includes(i)).slice(0, MAX_BARS - found.length);
  const kept = new Set([...found, ...others]);
  return byImportance.filter((i) => kept.has(i));
}

/** The strongest by p-value or size of W: three times what the widest level selects, or 60. */
function pointOrder() {
  const key = data.method === "knockoffs" ? "statistic" : "pvalue";
  const known = everyone.filter((i) => data[key][i] !== null);
  const size = (i) => (key === "pvalue" ? data.pvalue[i] : -Math.abs(data.statistic[i]));
  known.sort((a, b) => size(a) - size(b));
  const widest = data.levels[data.levels.length - 1] ?? 0;
  const most = known.filter((i) => data.qvalue[i] !== null && data.qvalue[i] <= widest).length;
  return { order: known.slice(0, Math.max(60, 3 * most)), total: key === "pvalue" ? data.tests : known.length };
}

function showPlots() {
  const figure = $("bars");
  const whole = data.selected.every((picked, i) => !picked || bars.includes(i));
  figure.querySelector("figcaption").textContent = bars.length === total
    ? "Importance of all features"
    : `Importance of ${bars.length} of ${count(total)} features: ${whole ? "the selected and the next" : "the strongest"}`;
  drawBars(figure.querySelector("svg"), data, bars, chosen, number);
  figure.querySelector("svg").setAttribute("aria-label",
    bars.map((i) => `${data.feature[i]} ${number(data.importance[i])}`).join(", "));
  const other = $("points");
  if (!other) return;
  other.hidden = points.order.length === 0;
  if (other.hidden) return;
  const svg = other.querySelector("svg"), height = Math.max(240, ROW * bars.length + 4);
  svg.setAttribute("aria-label", other.querySelector("figcaption").textContent);
  if (data.method === "knockoffs") drawW(svg, data, points.order, chosen, height);
  else drawPValues(svg, data, points.order, points.total, state.level, chosen, height);
}

// ---- table

const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });
const COLUMNS = [
  { key: "rank", label: "#", text: (i) => String(i + 1), value: (i) => i, class: "wide rank" },
  { key: "feature", label: "Feature", text: (i) => data.feature[i], class: "name" },
  { key: "kind", label: "Kind", text: (i) => data.kind[i], class: "wide kind" },
  { key: "importance", label: "Importance", text: (i) => number(data.importance[i]), down: true,
    class: "share" },
  { key: "statistic", label: data.statisticName, down: true, class: "wide",
    text: (i) => (data.method === "hrt" ? fixed(data.statistic[i]) : number(data.statistic[i])) },
  { key: "pvalue", label: "p", text: (i) => data.shownP[i], class: "wide" },
  { key: "qvalue", label: "q", text: (i) => data.shownQ[i] },
  { key: "selected", label: data.markName, text: (i) => (chosen(i) ? "✓" : ""),
    value: (i) => (chosen(i) ? 1 : 0), down: true, class: "mark" },
  { key: "note", label: "Note", text: (i) => data.note[i], class: "wide note" },
].filter((column) => {
  if (column.key === "kind") return new Set(data.kind).size > 1;
  if (column.key === "note") return data.note.some(Boolean);
  return column.value || data[column.key].some((value) => value !== null);
});
const rows = new Array(total);
const most = Math.max(data.importance[byImportance[0]] ?? 0, 1e-300);

function buildHead() {
  const head = document.querySelector("thead tr");
  for (const column of COLUMNS) {
    const cell = document.createElement("th"), button = document.createElement("button");
    cell.scope = "col";
    cell.className = column.class || "";
    button.type = "button";
    button.textContent = column.label;
    button.title = data.hints[column.key];
    button.addEventListener("click", () => {
      const again = state.sort === column.key;
      state.down = again ? !state.down : Boolean(column.down);
      state.sort = column.key;
      showTable();
    });
    cell.append(button);
    head.append(cell);
    column.head = cell;
  }
}

/** The row of a feature, made when it is first seen. */
function row(i) {
  const isChosen = chosen(i);
  if (!rows[i]) {
    rows[i] = document.createElement("tr");
    for (const column of COLUMNS) {
      const cell = document.createElement("td");
      cell.className = column.class || "";
      cell.textContent = column.text(i);
      if (column.key === "importance") {
        cell.style.setProperty("--share", Math.max(0, data.importance[i] ?? 0) / most);
      }
      rows[i].append(cell);
    }
  }
  rows[i].className = isChosen ? "on" : "";
  rows[i].querySelector(".mark").textContent = isChosen ? "✓" : "";
  return rows[i];
}

function sorted(found) {
  const column = COLUMNS.find((c) => c.key === state.sort);
  const value = column.value || ((i) => data[column.key][i]);
  const words = ["feature", "kind", "note"].includes(column.key);
  const sign = state.down ? -1 : 1;
  return found.sort((a, b) => {
    const x = value(a), y = value(b);
    if (x === null || y === null) return (x === null) - (y === null) || a - b;
    return sign * (words ? collator.compare(x, y) : x - y) || a - b;
  });
}

function showTable() {
  const wanted = $("search").value.trim().toLowerCase();
  let found = everyone.filter((i) => data.feature[i].toLowerCase().includes(wanted));
  if ($("only").checked) found = found.filter(chosen);
  // On paper all selected features are shown, wherever they are.
  const shown = sorted(found).filter((i, k) => k < state.limit || (printing && chosen(i)));
  document.querySelector("tbody").replaceChildren(...shown.map(row));
  for (const column of COLUMNS) {
    const here = column.key === state.sort;
    column.head.setAttribute("aria-sort", here ? (state.down ? "descending" : "ascending") : "none");
  }
  const matching = found.length < total ? `${count(found.length)} of ${count(total)}` : count(total);
  $("shown").textContent = shown.length < found.length
    ? `The first ${count(shown.length)} of ${matching} features` : `${matching} features`;
  const left = found.length - shown.length;
  $("more").hidden = left === 0;
  $("more").textContent = `Show ${count(Math.min(MORE, left))} more`;
}

// ---- download

/** Names that a spreadsheet would run as a formula get an apostrophe; others stay. */
function csvText(value) {
  const text = /^'*[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function csv() {
  const numbers = ["importance", "statistic", "pvalue", "qvalue"];
  const lines = everyone.map((i) => [
    csvText(data.feature[i]), csvText(data.kind[i]),
    ...numbers.map((key) => (data[key][i] === null ? "" : String(data[key][i]))),
    chosen(i) ? "True" : "False", csvText(data.note[i]),
  ].join(","));
  return [["feature", "kind", ...numbers, "selected", "note"].join(","), ...lines, ""].join("\r\n");
}

function download() {
  const link = document.createElement("a");
  // The mark at the beginning tells spreadsheets that the text is UTF-8.
  link.href = URL.createObjectURL(new Blob(["\ufeff", csv()], { type: "text/csv;charset=utf-8" }));
  link.download = data.fdr === null ? "ranking.csv" : `selection-fdr-${state.level}.csv`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// ---- copy and theme

function copyMethods() {
  const cited = [...document.querySelectorAll("#references li")].map((item) => item.textContent);
  const text = `${$("paragraph").textContent}\n\nReferences\n${cited.join("\n")}\n`;
  const done = () => {
    $("copy").textContent = "Copied";
    setTimeout(() => ($("copy").textContent = "Copy text"), 2000);
  };
  if (navigator.clipboard) navigator.clipboard.writeText(text).then(done, () => copyOld(text, done));
  else copyOld(text, done);
}

/** For browsers that keep the clipboard from local files. */
function copyOld(text, done) {
  const box = document.createElement("textarea");
  box.value = text;
  document.body.append(box);
  box.select();
  if (document.execCommand("copy")) done();
  box.remove();
}

const root = document.documentElement, system = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
function showTheme() {
  $("theme").textContent = isDark() ? "Light" : "Dark";
  $("theme").setAttribute("aria-label", `Switch to ${isDark() ? "light" : "dark"} colours`);
}

// ---- begin

function update() {
  showAnswer();
  showPlots();
  showTable();
}

function setLevel(index) {
  $("slider").value = index;
  state.level = data.levels[index];
  update();
}

buildHead();
if (data.fdr !== null) {
  const run = data.levels.indexOf(data.fdr);
  const at = run / (data.levels.length - 1);
  $("mark").style.setProperty("--at", at);
  $("mark").classList.toggle("flipped", at > 0.6);
  let waiting = false;
  $("slider").addEventListener("input", () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      setLevel(Number($("slider").value));
    });
  });
  $("back").addEventListener("click", () => setLevel(run));
  setLevel(run); // a reloaded page may have kept another position
} else {
  update();
}
for (const id of ["search", "only"]) {
  $(id).addEventListener("input", () => {
    state.limit = PAGE;
    showTable();
  });
}
$("more").addEventListener("click", () => {
  state.limit += MORE;
  showTable();
});
$("csv").addEventListener("click", download);
$("copy").hidden = false;
$("copy").addEventListener("click", copyMethods);
$("theme").hidden = false;
$("theme").addEventListener("click", () => {
  root.dataset.theme = isDark() ? "light" : "dark";
  showTheme();
});
system.addEventListener("change", showTheme);
showTheme();
let width = root.clientWidth;
addEventListener("resize", () => {
  if (root.clientWidth === width) return;
  width = root.clientWidth;
  showPlots();
});
for (const [event, paper] of [["beforeprint", true], ["afterprint", false]]) {
  addEventListener(event, () => {
    printing = paper;
    showPlots();
    showTable();
  });
}
