// Exact errors of the estimators, the error of every split, and a histogram that fills.

import { Chart, COLOURS, faded, stepped } from "./chart.js";
import { draw, find, make, swatch, table, tellError, tellNotice } from "./dom.js";
import { fixed, number, percent, signed, whole } from "./format.js";
import { get, latest, listen } from "./requests.js";
import { addressed, fillForm, formValues, showValues, writeAddress } from "./state.js";

const PRESETS = [
  { name: "1 · All arms alike", at: { arms: 10, gap: 0, spread: 1, n: 20, k: 5 },
    story: "Ten arms are worth the same. The single estimator still reports a winner well above the truth: it takes the maximum of ten noisy means. Estimators that select and evaluate with different samples have no bias here." },
  { name: "2 · A small gap", at: { arms: 10, gap: 0.5, spread: 1, n: 20, k: 5 },
    story: "Now one arm is better by half a standard deviation. The double estimator often selects a wrong arm and reports its lower mean: it underestimates. So does the ensemble, with less variance. The single estimator has the least error here: no estimator is best everywhere." },
  { name: "3 · A clear winner", at: { arms: 10, gap: 2, spread: 1, n: 20, k: 5 },
    story: "With a large gap every estimator selects the best arm, and no bias is left. Only the variance differs: the double estimator evaluates with half of the samples." },
  { name: "4 · An even split is never best", at: { arms: 2, gap: 0.1, spread: 0.5, n: 100, k: 4 },
    story: "The paper's figure 1: two arms, variance 0.25. The error is lowest where fewer than half of the samples select. So an ensemble in which one of K members selects beats the double estimator." },
  { name: "5 · More arms, more members", at: { arms: 6, gap: 0.2, spread: 0.5, n: 100, k: 8 },
    story: "The paper's figure 2: with six arms the best split selects with even fewer samples, which corresponds to a larger ensemble." },
];

const form = find("#controls");
const splits = new Chart(find("#splits"), { height: 250 });
const histogram = new Chart(find("#histogram"), { height: 250 });
let stop = () => {};

function parameters() {
  const values = formValues(form);
  values.k = String(Math.min(Number(values.k), Number(values.n)));
  return values;
}

const relative = (mse, least) => (mse === least ? "least error" : `${number(mse / least, 3)}×`);

function showErrors(exact, least) {
  const rows = exact.estimators.map((row) => [
    make("span", {}, swatch(COLOURS[row.key]), row.name),
    signed(row.bias), number(row.variance), number(row.mse), relative(row.mse, least),
  ]);
  const columns = [{ name: "Estimator" }, ...["Bias", "Variance", "MSE", "MSE ÷ least"].map((name) => ({ name, number: true }))];
  const made = table(columns, rows);
  exact.estimators.forEach((row, i) => keep(made.querySelectorAll("tbody tr")[i], row));
  find("#errors").replaceChildren(made);
}

/** Keep the numbers of a row as they are, beside what is shown. */
function keep(line, row) {
  line.dataset.key = row.key;
  for (const name of ["bias", "variance", "mse"]) line.dataset[name] = row[name];
}

/** How often each arm is selected, as bars; the first arm is the best. */
function strip(name, selection, highest) {
  const width = 100 / selection.length;
  const bars = selection.map((share, arm) => draw("rect", {
    class: "bar", x: arm * width + width * 0.12, y: 24 - 23 * (share / highest), width: width * 0.76, height: 23 * (share / highest),
    opacity: arm ? 0.45 : 1 }, draw("title", {}, `arm ${arm + 1}: ${percent(share)}`)));
  return draw("svg", { class: "strip", viewBox: "0 0 100 24", preserveAspectRatio: "none", role: "img",
    "aria-label": `${name} selects the best arm with probability ${percent(selection[0])}` }, bars,
  draw("line", { x1: 0, x2: 100, y1: 24, y2: 24, stroke: "currentColor", "stroke-width": 0.4 }));
}

function showSelection(exact) {
  const arms = exact.estimators[0].selection.length;
  const highest = Math.max(...exact.estimators.flatMap((row) => row.selection));
  const rows = exact.estimators.map((row) => {
    const picture = strip(row.name, row.selection, highest);
    picture.style.color = COLOURS[row.key];
    return [make("span", {}, swatch(COLOURS[row.key]), row.name), picture, percent(row.selection[0])];
  });
  find("#selection").replaceChildren(table([{ name: "Estimator" }, { name: `All ${arms} arms` }, { name: "Best arm", number: true }], rows));
}

/** The package's other rules: exact numbers from the request, simulated ones from the stream. */
function showRules(exact, simulated, least) {
  const middle = ([value]) => value;
  const half = ([, low, high]) => make("span", { class: "half" }, ` ± ${number((high - low) / 2, 2)}`);
  const rows = exact.rules.map((rule) => {
    const told = simulated[rule.key];
    if (!("mse" in rule) && !told) return [rule.name, "…", "…", "…", "", "", "simulated"];
    const { bias, variance, mse } = told ?? rule;
    const numbers = told
      ? [[signed(middle(bias)), half(bias)], [number(middle(variance)), half(variance)], [number(middle(mse)), half(mse)]]
      : [signed(bias), number(variance), number(mse)];
    const selection = (told ?? rule).selection;
    const chosen = selection ? make("span", { class: "chosen" }, strip(rule.name, selection, Math.max(...selection)), percent(selection[0])) : "—";
    return [rule.name, ...numbers, relative(told ? middle(mse) : mse, least), chosen, told ? "simulated" : "exact"];
  });
  const made = table([{ name: "Rule" }, ...["Bias", "Variance", "MSE", "MSE ÷ least"].map((name) => ({ name, number: true })),
    { name: "Selects the best arm" }, { name: "Numbers" }], rows);
  exact.rules.forEach((rule, i) => {
    const line = made.querySelectorAll("tbody tr")[i];
    const told = simulated[rule.key];
    keep(line, told ? { key: rule.key, bias: told.bias, variance: told.variance, mse: told.mse } : rule);
  });
  find("#rules").replaceChildren(made);
}

function showSplits(exact, n, k) {
  const even = n / 2;
  const { n_index: best, mse } = exact.optimum;
  splits.describe(`Mean squared error against the number of selecting samples; least at ${best} of ${n}.`);
  splits.show({
    data: [exact.splits.n_index, exact.splits.mse],
    series: [{ label: "mean squared error", stroke: COLOURS.split, width: 2 }],
    xLabel: "samples that select, N₁", xName: "N₁", legend: false, yLog: Math.max(...exact.splits.mse) > 8 * mse,
    marks: [
      { x: best, label: `best: ${best} of ${n}`, colour: COLOURS.split },
      { x: even, label: "even (double)", colour: COLOURS.double, dash: [4, 4], row: 1 },
      { x: n / k, label: `K = ${k}`, colour: COLOURS.ensemble, dash: [4, 4], row: 2 },
    ],
  });
  find("#advice").textContent = `Of all ensembles, K = ${exact.best_members} has the least error here. The best split is ${best} of ${n}.`;
}

let shown = null;

/** Show all errors; `simulated` are those of the rules that have no exact ones, as far as they are known. */
function showAll(exact, simulated = {}) {
  shown = exact;
  const all = [...exact.estimators, ...exact.rules].map((row) => row.mse ?? simulated[row.key]?.mse[0] ?? Infinity);
  const least = Math.min(...all);
  showErrors(exact, least);
  showRules(exact, simulated, least);
}

function showHistogram(told) {
  showAll(shown, told.rules);
  find("#drawn").textContent = whole(told.drawn);
  find("#drawn").dataset.drawn = told.drawn;
  const keys = Object.keys(told.estimators);
  const share = (count) => count / told.drawn;
  const columns = keys.map((key) => [...told.estimators[key].counts.map(share), 0]);
  histogram.describe(`Histogram of ${told.drawn} estimates. Mean errors: ${keys.map((key) => `${key} ${fixed(told.estimators[key].mean)}`).join(", ")}.`);
  histogram.show({
    data: [told.edges, ...columns],
    series: keys.map((key) => ({ label: key === "split" ? "best split" : key, stroke: COLOURS[key], fill: faded(COLOURS[key], 0.1), width: 1.6, paths: stepped() })),
    xLabel: "estimate minus truth", still: true, yHidden: true, marks: [{ x: 0, label: "truth" }],
  });
}

function simulate(at) {
  stop();
  stop = listen("/api/estimators/simulation", { ...at, seed: Math.floor(Math.random() * 1e9) }, {
    histogram: showHistogram, done: () => {}, refused: ({ error }) => tellError(error),
  });
}

const update = latest(async (signal) => {
  const at = current;
  const exact = await get("/api/estimators", at, signal);
  showAll(exact);
  showSelection(exact);
  showSplits(exact, Number(at.n ?? 20), Number(at.k ?? 5));
  simulate(at);
}, tellError);

let current = {};

function move(at) {
  current = at;
  writeAddress(at);
  showValues(form);
  const told = PRESETS.find((preset) => Object.entries(preset.at).every(([name, value]) => String(value) === String(at[name])));
  find("#story").textContent = told?.story ?? "Your own setting. Its address can be shared; the buttons above return to the story.";
  for (const button of find(".presets").children) button.setAttribute("aria-pressed", String(button.textContent === told?.name));
  update();
}

find(".presets").append(...PRESETS.map((preset) => make("button", { type: "button", "aria-pressed": "false", onclick: () => {
  fillForm(form, preset.at);
  move(parameters());
} }, preset.name)));

form.addEventListener("input", () => move(parameters()));
form.addEventListener("submit", (event) => event.preventDefault());
addEventListener("pagehide", () => stop());

tellNotice(fillForm(form, addressed()));
move(parameters());
