// The curves of the selected runs.

import uPlot from "../uplot/uPlot.esm.js";
import { Chart, faded } from "./chart.js";
import { find, make, swatch, tellError } from "./dom.js";
import { short } from "./format.js";
import { get, latest } from "./requests.js";
import { addressed, formValues } from "./state.js";

const TITLES = {
  "evaluation/return": "Return in evaluations", return: "Return while training", "bias/mean": "Bias: Q̂ − discounted return",
  loss: "Loss", "bias/normalised": "Bias relative to the return", "bias/spread": "Members' spread: standard deviation of Q̂",
  "bias/agreement": "Members' agreement on the greedy action", split: "Members that select",
};
// The server leaves out what no selected run has measured.
const FIRST = ["evaluation/return", "bias/mean", "return", "loss", "bias/spread", "bias/agreement", "split"];
const MOST_IN_LEGEND = 6; // beyond that, the key above all charts is enough
const UNITS = { steps: "agent steps", frames: "frames", time: "hours of training" };

const charts = new Map();
const extra = new Set((addressed().metrics ?? "").split("|").filter(Boolean));
let ids = [];
let coloured = () => {};
let span = null;

/** The state of the view, for the address. */
export const viewed = () => {
  const { axis, group, smooth } = formValues(find("#view"));
  return { axis: axis === "steps" ? "" : axis, group, smooth: smooth === "0" ? "" : smooth, metrics: [...extra].join("|") };
};

function joined(lines, colours) {
  const tables = [];
  const series = [];
  const bands = [];
  const add = (x, y, look) => {
    tables.push([x, y]);
    series.push(look);
    return series.length;
  };
  for (const line of lines) {
    const colour = colours[line.name];
    for (const seed of line.seeds ?? []) add(seed.x, seed.y, { label: "", class: "unnamed", stroke: faded(colour, 0.45), width: 0.8 });
    if (line.low) {
      const high = add(line.x, line.high, { label: "", class: "unnamed", stroke: "transparent", width: 0 });
      const low = add(line.x, line.low, { label: "", class: "unnamed", stroke: "transparent", width: 0 });
      bands.push({ series: [high, low], fill: faded(colour, 0.18) });
    }
    const few = line.x.length < 40;
    add(line.x, line.y, { label: line.label, stroke: colour, width: 1.8, points: { show: few, size: 5, fill: colour } });
  }
  return { data: tables.length ? uPlot.join(tables) : [[], []], series, bands };
}

function chartOf(metric) {
  if (!charts.has(metric)) {
    const place = make("div", {});
    const panel = make("section", { class: "panel", "data-metric": metric }, make("h2", {}, TITLES[metric] ?? metric), place);
    charts.set(metric, { panel, chart: new Chart(place, { height: 250 }) });
  }
  return charts.get(metric);
}

function draw(told, axis) {
  const metrics = Object.keys(told.charts).filter((metric) => told.charts[metric].length);
  find("#charts").replaceChildren(...metrics.map((metric) => chartOf(metric).panel));
  for (const metric of metrics) {
    const lines = told.charts[metric];
    const points = lines.reduce((sum, line) => sum + line.x.length, 0);
    const { panel, chart } = chartOf(metric);
    panel.dataset.points = points;
    const last = lines.map((line) => `${line.label}: ${short(line.y.at(-1))}`).join("; ");
    chart.describe(`${TITLES[metric] ?? metric} of ${lines.length} ${lines.length === 1 ? "run" : "runs or groups"}. Last values: ${last}`);
    chart.show({ ...joined(lines, told.colours), xLabel: UNITS[axis], xName: UNITS[axis], legend: lines.length <= MOST_IN_LEGEND, marks: [],
      onZoom: (range) => {
        const moved = JSON.stringify(range) !== JSON.stringify(span);
        span = range;
        find("#unzoom").hidden = !span;
        if (moved) update();
      } });
  }
  find("#hint").hidden = metrics.length > 0;
  find("#hint").textContent = ids.length ? "These runs have measured nothing yet." : "Select runs above to see their curves. Drag over a chart to zoom; double-click shows everything.";
}

/** The names and colours of the selected runs, above their charts and in the list. */
function showKey({ names, colours }) {
  find("#key").replaceChildren(...Object.entries(colours).map(([name, colour]) => make("li", {}, swatch(colour), name)));
  coloured(new Map(Object.entries(names).map(([id, name]) => [id, colours[name]])));
}

function offer(known, shown) {
  const options = known.filter((metric) => !shown.includes(metric)).sort();
  const head = make("option", { value: "" }, options.length ? "a chart …" : "nothing else");
  find("#more").replaceChildren(head, ...options.map((metric) => make("option", { value: metric }, TITLES[metric] ?? metric)));
}

const update = latest(async (signal) => {
  if (!ids.length) {
    draw({ charts: {} }, "steps");
    showKey({ names: {}, colours: {} });
    return;
  }
  const { axis, group, smooth } = formValues(find("#view"));
  const metrics = [...FIRST, ...extra];
  const zoom = span ? { from: span[0], to: span[1] } : {};
  const told = await get("/api/runs/curves", { runs: ids.join("|"), metrics: metrics.join("|"), axis, group, smooth, ...zoom }, signal);
  for (const option of find("#view [name=axis]").options) option.disabled = !told.axes.includes(option.value);
  draw(told, axis);
  showKey(told);
  offer(told.metrics, Object.keys(told.charts));
  const notes = [];
  if (told.read < 1) notes.push(`reading: ${Math.floor(100 * told.read)}%`);
  if (told.damaged) notes.push(`${told.damaged} damaged lines are left out`);
  find("#reading").textContent = notes.join("; ");
  if (told.read < 1) update();
}, tellError, 120);

/** Show the curves of these runs; `onColours` gets the colour of each. */
export function showCurves(chosen, onColours) {
  coloured = onColours;
  ids = chosen;
  update();
}

find("#more").addEventListener("input", (event) => {
  event.stopPropagation();
  if (event.target.value) extra.add(event.target.value);
  update();
});
find("#unzoom").addEventListener("click", () => {
  span = null;
  for (const { chart } of charts.values()) chart.zoomed = false;
  find("#unzoom").hidden = true;
  update();
});
