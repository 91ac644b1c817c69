// A study's findings: sort, filter, and open single runs.

import { find, keepFocus, make, swatch, tellError } from "./dom.js";
import { fixed, number, short, signed, whole } from "./format.js";
import { get } from "./requests.js";
import { addressed, writeAddress } from "./state.js";

let sorted = { key: null, down: true };

function withInterval(told, form = (value) => fixed(value, 2)) {
  if (!told) return "";
  return told.low === null ? form(told.value) : `${form(told.value)} [${form(told.low)}, ${form(told.high)}]`;
}

/** Every run as a dot; with seeds enough, the IQM and its interval behind them. */
function dots(agent, [low, high], few) {
  const place = (value) => 2 + (96 * (value - low)) / (high - low || 1);
  const line = make("div", { class: "line", role: "img", "aria-label": `Scores of ${agent.scores.length} runs of ${agent.name}: ${agent.scores.map((score) => number(score)).join(", ")}` });
  const add = (kind, left, right = null) => {
    const mark = make("span", { class: kind });
    mark.style.left = `${left}%`;
    if (right !== null) mark.style.width = `${right - left}%`;
    mark.style.setProperty("--own", agent.colour);
    line.append(mark);
  };
  if (!few && agent.iqm?.low !== null && agent.iqm) {
    add("interval", place(agent.iqm.low), place(agent.iqm.high));
    add("middle", place(agent.iqm.value));
  }
  for (const score of agent.scores) add("run-dot", place(score));
  return line;
}

const columns = ({ few, bias_name: bias }) => [
  { key: "name", name: "Agent" },
  { key: "scores", name: few ? "Every run's score" : "Runs, IQM and its interval", plain: true },
  few ? { key: "mean", name: "Mean", number: true } : { key: "iqm", name: "IQM [95%]", number: true },
  ...(few ? [] : [{ key: "behind", name: "Behind the best", number: true }, { key: "beaten", name: "P(best beats it)", number: true }]),
  { key: "bias", name: bias[0].toUpperCase() + bias.slice(1), number: true },
  { key: "speed", name: "Steps/s", number: true },
];

function compared(one, other) {
  const value = (agent) => (agent[sorted.key]?.value ?? agent[sorted.key]);
  const [a, b] = [value(one), value(other)];
  if (a === null || a === undefined) return 1;
  if (b === null || b === undefined) return -1;
  const order = typeof a === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
  return sorted.down ? -order : order;
}

function ranking(told, filter, again) {
  const scores = told.agents.flatMap((agent) => agent.scores);
  const bounds = scores.length ? [Math.min(0, ...scores), Math.max(...scores)] : [0, 1];
  const kept = told.agents.filter((agent) => agent.name.toLowerCase().includes(filter));
  const agents = sorted.key ? [...kept].sort(compared) : kept;
  const head = columns(told).map((column) => {
    const sort = () => {
      sorted = { key: column.key, down: sorted.key === column.key ? !sorted.down : column.key !== "name" };
      again();
    };
    const order = sorted.key === column.key ? (sorted.down ? "descending" : "ascending") : "none";
    return make("th", { scope: "col", class: column.number ? "number" : "", "aria-sort": order }, column.plain ? column.name : make("button", { type: "button", "data-key": `sort ${column.key}`, onclick: sort }, column.name));
  });
  const rows = agents.map((agent) => {
    const cells = {
      name: make("span", {}, swatch(agent.colour), agent.name), scores: dots(agent, bounds, told.few), mean: withInterval(told.few ? { ...agent.mean, low: null } : agent.mean),
      iqm: withInterval(agent.iqm), behind: withInterval(agent.behind), beaten: withInterval(agent.beaten),
      bias: agent.bias ? withInterval(agent.bias, (value) => signed(value, 2)) : "not measured", speed: agent.speed ? whole(agent.speed) : "",
    };
    return make("tr", { "data-agent": agent.name }, columns(told).map((column) => make("td", column.number ? { class: "number" } : column.key === "scores" ? { class: "dots" } : {}, cells[column.key])));
  });
  return make("div", { class: "wide" }, make("table", { class: "ranking" }, make("thead", {}, make("tr", {}, head)), make("tbody", {}, rows)));
}

function environment(told) {
  const rows = told.agents.filter((agent) => agent.runs.length).map((agent) => {
    const ids = agent.runs.map((run) => run.id).filter(Boolean);
    const drill = ids.length ? make("a", { href: `/runs?${new URLSearchParams({ run: ids.slice(0, 60).join("|"), group: "1" })}` }, "curves") : "";
    const seeds = agent.runs.map((run) => make("li", {}, `seed ${run.seed}: ${number(run.score, 4)}`, run.bias === null ? "" : `, bias ${signed(run.bias, 2)} `,
      run.id ? make("a", { href: `/runs?${new URLSearchParams({ run: run.id })}` }, "open") : ""));
    const mean = agent.half_width === null ? number(agent.mean, 4) : `${number(agent.mean, 4)} ± ${number(agent.half_width, 2)}`;
    return make("tr", {}, make("th", { scope: "row" }, agent.name), make("td", { class: "number" }, mean),
      make("td", {}, make("details", {}, make("summary", {}, `${agent.runs.length} ${agent.runs.length === 1 ? "seed" : "seeds"}`), make("ul", { class: "small" }, seeds))), make("td", {}, drill));
  });
  const head = make("tr", {}, make("th", { scope: "col" }, "Agent"), make("th", { scope: "col", class: "number" }, "Score"), make("th", { scope: "col" }, "Runs"), make("th", { scope: "col" }, ""));
  return make("section", { class: "card" }, make("h2", {}, told.name), make("p", { class: "small" }, `scored at ${short(told.horizon)}${told.compared ? "" : "; not part of the comparison"}`),
    make("table", {}, make("thead", {}, head), make("tbody", {}, rows)));
}

function show(told) {
  const filter = make("input", { type: "search", placeholder: "Filter agents", "aria-label": "Filter agents" });
  const place = make("div", {});
  const again = () => keepFocus(() => place.replaceChildren(ranking(told, filter.value.toLowerCase(), again)));
  filter.addEventListener("input", again);
  again();
  find("#study").replaceChildren(
    make("p", { class: `headline${told.sure ? "" : " unsure"}` }, told.headline), ...told.notes.map((note) => make("p", { class: "note" }, note)),
    make("div", { class: "toolbar" }, filter), place, make("p", { class: "small note" }, told.caveats.join(" ")),
    make("h2", {}, "Each environment"), make("div", { class: "pair" }, told.environments.map(environment)),
    make("details", {}, make("summary", {}, "How runs are scored and compared"), make("ul", {}, told.method.map((line) => make("li", { class: "small" }, line)))));
}

async function open(name) {
  sorted = { key: null, down: true };
  writeAddress({ study: name });
  for (const button of find("#choices").children) button.setAttribute("aria-pressed", String(button.dataset.study === name));
  find("#study").replaceChildren(make("p", { class: "small", role: "status" }, "Comparing the agents …"));
  try {
    show(await get("/api/studies/one", { study: name }));
    tellError(null);
  } catch (error) {
    find("#study").replaceChildren();
    tellError(error.message);
  }
}

try {
  const { studies, folder } = await get("/api/studies");
  find("#empty").hidden = studies.length > 0;
  find("#choices").replaceChildren(...studies.map(({ id, runs }) => make("button", { type: "button", "data-study": id, "aria-pressed": "false", onclick: () => open(id) }, `${id === "." ? folder : id} (${runs})`)));
  const { study = studies[0]?.id } = addressed();
  if (study) await open(study);
} catch (error) {
  tellError(error.message);
}
