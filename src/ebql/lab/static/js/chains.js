// Tabular agents on the Meta-Chain: choose, run, compare.

import uPlot from "../uplot/uPlot.esm.js";
import { drawing } from "./chain-drawing.js";
import { Chart, faded } from "./chart.js";
import { find, findAll, make, swatch, table, tellError, tellNotice } from "./dom.js";
import { fixed, signed } from "./format.js";
import { get, listen } from "./requests.js";
import { addressed, fillForm, formValues, showValues, writeAddress } from "./state.js";

const AGENTS = ["QL", "DQL", "EBQL", "Maxmin", "Ensemble", "Cross", "Clipped", "Weighted"];
const PAPER = "-0.6,-0.4,-0.2,0.2,0.4,0.6";
const USUAL = { actions: 10, epsilon: "0.1", alpha: "1/n^0.8", agents: "QL,DQL,EBQL", k: "3,10,25", episodes: 2000, seeds: 30 };
const PRESETS = [
  { name: "The paper's Meta-Chain", at: { ...USUAL, means: PAPER } },
  { name: "… with random behaviour", at: { ...USUAL, means: PAPER, epsilon: "1" } },
  { name: "Sutton and Barto, example 6.7", at: { ...USUAL, means: "-0.1", alpha: "0.1", k: "10", episodes: 500, seeds: 100 } },
  { name: "Risk pays", at: { ...USUAL, means: "0.2" } },
  { name: "Nothing to gain", at: { ...USUAL, means: "0" } },
];

const form = find("#controls");
const correct = new Chart(find("#correct"), { height: 270 });
const biases = new Chart(find("#biases"), { height: 270 });
let curves = [];
let stop = () => {};

function parameters() {
  const { means, actions, epsilon, alpha, k, episodes, seeds } = formValues(form);
  const agents = findAll("fieldset input:checked", form).map((box) => box.value).join(",");
  return { means: means.replaceAll(" ", ""), actions, epsilon, alpha, agents, k: k.replaceAll(" ", ""), episodes, seeds };
}

function fill(at) {
  const misfits = fillForm(form, Object.fromEntries(Object.entries(at).map(([name, value]) => [name, String(value)])));
  const agents = (at.agents ?? USUAL.agents).split(",");
  const unknown = agents.filter((name) => !AGENTS.includes(name)).map((name) => `There is no agent “${name.slice(0, 40)}” here.`);
  for (const box of findAll("fieldset input", form)) box.checked = agents.includes(box.value);
  tellNotice([...misfits, ...unknown]);
  showValues(form);
  sketch();
}

function sketch() {
  const means = find("#means").value.split(",").map(Number).filter(Number.isFinite);
  find("#drawing").replaceChildren(drawing(means, Number(find("#actions").value)));
}

function draw(chart, metric, words) {
  const tables = [];
  const series = [];
  const bands = [];
  for (const curve of curves) {
    const { y, low, high } = curve.metrics[metric];
    tables.push([curve.x, high], [curve.x, low], [curve.x, y]);
    const place = series.length + 1;
    bands.push({ series: [place, place + 1], fill: faded(curve.colour, 0.16) });
    series.push({ label: "", class: "unnamed", stroke: "transparent", width: 0 }, { label: "", class: "unnamed", stroke: "transparent", width: 0 }, { label: curve.label, stroke: curve.colour });
  }
  chart.describe(`${words}: ${curves.map((curve) => `${curve.label} ends at ${fixed(curve.metrics[metric].y.at(-1))}`).join(", ")}`);
  chart.show({ data: tables.length ? uPlot.join(tables) : [[], []], series, bands, xLabel: "episodes", xName: "episodes" });
}

function show() {
  find("#nothing").hidden = true;
  find("#learnt").hidden = false;
  draw(correct, "greedy_correct", "Rate of correct actions");
  draw(biases, find("#bias").value, "Bias");
  const best = Math.max(...curves.map((curve) => curve.rate));
  const rows = curves.map((curve) => [make("span", {}, swatch(curve.colour), curve.label), `${fixed(curve.rate)} ± ${fixed(curve.half_width)}`,
    signed(curve.metrics.bias_max.y.at(-1)), curve.rate === best ? "best" : ""]);
  const made = table([{ name: "Agent" }, { name: "Correct actions, whole run", number: true }, { name: "Final bias of the value", number: true }, { name: "" }], rows);
  findAll("tbody tr", made).forEach((row, i) => { row.dataset.rate = curves[i].rate; row.dataset.agent = curves[i].label; });
  find("#rates").replaceChildren(made);
}

function ended(words) {
  find("#cancel").hidden = true;
  find("#run").disabled = false;
  find("#told").textContent = words;
}

function run() {
  stop();
  const at = parameters();
  writeAddress(at);
  tellError(null);
  if (!at.agents) {
    tellError("Choose at least one agent.");
    return;
  }
  curves = [];
  find("#cancel").hidden = false;
  find("#run").disabled = true;
  find("#told").textContent = "Learning … (the very first run compiles the loop, which takes about 20 s)";
  const began = performance.now();
  const close = listen("/api/chains", at, {
    curve: (curve) => {
      curves.push(curve);
      show();
    },
    done: () => ended(`${curves.length} agents learnt in ${((performance.now() - began) / 1000).toFixed(1)} s.`),
    refused: ({ error }) => {
      tellError(error);
      ended("");
    },
    lost: () => {
      tellError("The lab does not answer. Is `ebql lab` still running?");
      ended("Stopped.");
    },
  });
  stop = () => {
    close();
    ended("Cancelled.");
  };
}

async function showMap() {
  const { regimes } = await get("/api/chains/regimes");
  const sizes = regimes[0].cells.map((cell) => cell.members);
  const rows = regimes.map(({ epsilon, alpha, cells }) => [`ε = ${epsilon}, α = ${alpha}`, ...cells.map((cell) => {
    const button = make("button", { type: "button", class: "cell", title: `against ${cell.rival}`, "aria-label": `Run ε = ${epsilon}, α = ${alpha}, K = ${cell.members}: margin ${signed(cell.margin)} against ${cell.rival}`,
      onclick: () => {
        fill({ ...USUAL, means: PAPER, epsilon, alpha, k: String(cell.members) });
        find("#controls").scrollIntoView({ block: "center" });
        run();
      } }, cell.sure ? make("b", {}, signed(cell.margin)) : signed(cell.margin));
    const strength = Math.min(1, Math.abs(cell.margin) / 0.1);
    button.style.background = faded(cell.margin > 0 ? "#0072b2" : "#d55e00", 0.55 * strength);
    return button;
  })]);
  find("#map").replaceChildren(table([{ name: "Regime" }, ...sizes.map((size) => ({ name: `K = ${size}`, number: true }))], rows));
}

find("fieldset", form).append(...AGENTS.map((name) => make("label", { class: "check" }, make("input", { type: "checkbox", value: name }), ` ${name}`)));
find(".presets").append(...PRESETS.map(({ name, at }) => make("button", { type: "button", onclick: () => {
  fill(at);
  run();
} }, name)));
form.addEventListener("input", () => {
  showValues(form);
  sketch();
});
form.addEventListener("submit", (event) => {
  event.preventDefault();
  run();
});
find("#cancel").addEventListener("click", () => stop());
find("#bias").addEventListener("input", () => curves.length && show());
addEventListener("pagehide", () => stop());

const shared = addressed();
fill({ ...PRESETS[0].at, ...shared });
showMap().catch((error) => tellError(error.message));
if (Object.keys(shared).length) run();
else ended("");
