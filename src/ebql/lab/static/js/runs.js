// All runs below the folder, live: the list, the selection and the address.

import { find, keepFocus, make, swatch, tellError, tellNotice } from "./dom.js";
import { duration, short, whole } from "./format.js";
import { listen, get } from "./requests.js";
import { showCurves, viewed } from "./runs-charts.js";
import { showFilms } from "./runs-films.js";
import { addressed, fillForm, showValues, writeAddress } from "./state.js";

const ORDER = ["running", "failed", "stopped", "queued", "done"];
const COLUMNS = [
  { key: "label", name: "Agent" }, { key: "seed", name: "Seed", number: true }, { key: "state", name: "State" },
  { key: "step", name: "Progress", number: true }, { key: "speed", name: "Steps/s", number: true }, { key: "left", name: "Left", number: true },
  { key: "environment", name: "Environment" }, { key: "id", name: "Folder" },
];
const MOST_ROWS = 200;
const MOST_SELECTED = 60;

const runs = new Map();
const selected = new Set();
let colours = new Map();
let sorted = { key: "state", down: false };
let drawn = false;
let lost = false;

function compared(one, other) {
  const value = (run) => (sorted.key === "state" ? ORDER.indexOf(run.state) : run[sorted.key]);
  const [a, b] = [value(one), value(other)];
  if (a === b) return one.id.localeCompare(other.id, "en", { numeric: true });
  if (a === null || a === undefined) return 1;
  if (b === null || b === undefined) return -1;
  const order = typeof a === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
  return sorted.down ? -order : order;
}

function shown() {
  const words = find("#filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  const text = (run) => `${run.label} ${run.environment} ${run.state} ${run.id} seed ${run.seed}`.toLowerCase();
  return [...runs.values()].filter((run) => words.every((word) => text(run).includes(word))).sort(compared);
}

function progress(run) {
  if (!run.steps) return run.step ? `${whole(run.step)} seeds` : "";
  const bar = make("progress", { max: run.steps, value: Math.min(run.step, run.steps), "aria-label": `${short(run.step)} of ${short(run.steps)} steps` });
  return make("span", { class: "progress" }, bar, ` ${short(run.step)} of ${short(run.steps)}`);
}

function rowOf(run) {
  const box = make("input", { type: "checkbox", "data-key": `run ${run.id}`, checked: selected.has(run.id), "aria-label": `Show ${run.label}, ${run.environment}, seed ${run.seed}, ${run.id}`,
    onchange: (event) => choose(run.id, event.target.checked) });
  const dot = swatch(colours.get(run.id) ?? "transparent");
  const cells = {
    label: make("label", {}, box, " ", dot, run.label), environment: run.environment, seed: run.seed ?? "",
    state: make("span", { class: `state ${run.state}`, title: run.reason ?? "" }, run.state),
    step: progress(run), speed: run.speed ? whole(run.speed) : "", left: run.state === "running" ? duration(run.left) : "",
    id: make("span", { class: "small path" }, run.id, run.reason ? ` — ${run.reason}` : ""),
  };
  return make("tr", { "data-run": run.id }, COLUMNS.map((column) => make("td", column.number ? { class: "number" } : {}, cells[column.key])));
}

function showHead() {
  find("#runs thead").replaceChildren(make("tr", {}, COLUMNS.map((column) => {
    const order = sorted.key === column.key ? (sorted.down ? "descending" : "ascending") : "none";
    const sort = () => {
      sorted = { key: column.key, down: sorted.key === column.key && !sorted.down };
      keepFocus(showHead);
      showList();
    };
    return make("th", { scope: "col", "aria-sort": order, class: column.number ? "number" : "" }, make("button", { type: "button", "data-key": `sort ${column.key}`, onclick: sort }, column.name));
  })));
}

function showList() {
  const found = shown();
  const rows = found.slice(0, MOST_ROWS).map(rowOf);
  if (found.length > MOST_ROWS) rows.push(make("tr", {}, make("td", { colspan: COLUMNS.length, class: "small" }, `… and ${whole(found.length - MOST_ROWS)} more: filter to see them`)));
  if (!found.length) rows.push(make("tr", {}, make("td", { colspan: COLUMNS.length, class: "small" }, "No run matches the filter.")));
  keepFocus(() => find("#runs tbody").replaceChildren(...rows));
  const counts = ORDER.map((state) => [state, [...runs.values()].filter((run) => run.state === state).length]).filter(([, count]) => count);
  find("#summary").textContent = `${whole(runs.size)} ${runs.size === 1 ? "run" : "runs"}: ${counts.map(([state, count]) => `${count} ${state}`).join(", ")}`;
  find("#empty").hidden = runs.size > 0;
  find("#filled").hidden = runs.size === 0;
}

/** Colour the selected runs as their curves are; the others have no colour. */
function paint(told) {
  const before = JSON.stringify([...colours]);
  colours = told;
  if (before !== JSON.stringify([...colours])) showList();
}

const chosen = () => [...selected].filter((id) => runs.has(id));

function remember() {
  writeAddress({ ...viewed(), run: chosen().join("|"), filter: find("#filter").value });
}

function changed() {
  const ids = chosen();
  find("#compare").disabled = ids.length !== 2;
  if (ids.length !== 2) find("#differences").replaceChildren();
  remember();
  showCurves(ids, paint);
  showFilms(ids.map((id) => runs.get(id)));
}

function choose(id, on) {
  if (on && selected.size >= MOST_SELECTED) tellError(`At most ${MOST_SELECTED} runs can be shown at once.`);
  else if (on) selected.add(id);
  else selected.delete(id);
  showList();
  changed();
}

async function compare() {
  const [a, b] = chosen();
  const { rows, same } = await get("/api/runs/differences", { a, b });
  const told = rows.length ? `${rows.length} settings differ, ${same} are the same.` : `All ${same} settings are the same.`;
  const head = make("tr", {}, ["Setting", a, b].map((name) => make("th", { scope: "col" }, name)));
  const body = rows.map(([name, mine, theirs]) => make("tr", {}, make("th", { scope: "row" }, name), make("td", { class: "path" }, mine), make("td", { class: "path" }, theirs)));
  find("#differences").replaceChildren(make("h2", {}, "Differences"), make("p", { class: "small" }, told), make("div", { class: "wide" }, make("table", {}, make("thead", {}, head), make("tbody", {}, body))));
}

function take(told) {
  for (const id of told.gone) runs.delete(id);
  const moved = told.runs.some((run) => selected.has(run.id));
  for (const run of told.runs) runs.set(run.id, run);
  const refused = find("#refused");
  refused.hidden = !told.refused.length;
  find("summary", refused).textContent = `${told.refused.length} folders cannot be read`;
  find("ul", refused).replaceChildren(...told.refused.map(({ id, reason }) => make("li", { class: "small" }, `${id}: ${reason}`)));
  if (!drawn && runs.size) {
    drawn = true;
    const unknown = [...selected].filter((id) => !runs.has(id));
    if (unknown.length) tellNotice(unknown.map((id) => `There is no run “${id.slice(0, 200)}” below this folder.`));
    unknown.forEach((id) => selected.delete(id));
    const live = [...runs.values()].filter((run) => run.state === "running");
    if (!selected.size) (live.length ? live : [...runs.values()].sort(compared)).slice(0, 8).forEach((run) => selected.add(run.id));
    showList();
    changed();
  } else {
    showList();
    if (moved) {
      showCurves(chosen(), paint);
      showFilms(chosen().map((id) => runs.get(id)));
    }
  }
}

const address = addressed();
tellNotice(fillForm(find("#view"), address));
showValues(find("#view"));
find("#filter").value = address.filter ?? "";
for (const id of (address.run ?? "").split("|").filter(Boolean)) selected.add(id);
find("#filter").addEventListener("input", () => {
  showList();
  remember();
});
find("#all").addEventListener("click", () => {
  shown().slice(0, MOST_SELECTED).forEach((run) => selected.add(run.id));
  showList();
  changed();
});
find("#none").addEventListener("click", () => {
  selected.clear();
  showList();
  changed();
});
find("#compare").addEventListener("click", () => compare().catch((error) => tellError(error.message)));
find("#view").addEventListener("input", () => {
  showValues(find("#view"));
  changed();
});
find("#view").addEventListener("submit", (event) => event.preventDefault());
showHead();
listen("/api/runs/events", {}, {
  runs: (told) => {
    if (lost) tellError(null);
    lost = false;
    take(told);
  },
  refused: ({ error }) => tellError(error),
  lost: () => {
    lost = true;
    tellError("The lab does not answer. Is `ebql lab` still running?");
  },
}, { again: true });
