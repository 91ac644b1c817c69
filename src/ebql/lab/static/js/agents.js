// The catalogue of methods.

import { find, make, tellError } from "./dom.js";
import { signed } from "./format.js";
import { get } from "./requests.js";
import { addressed, writeAddress } from "./state.js";

const WORDS = { over: "overestimates", under: "underestimates", either: "over- or underestimates" };
const FILTERS = [["all", "All"], ["over", "Overestimate"], ["either", "Either"], ["under", "Underestimate"]];

// The axis from under- to overestimation, with room at both ends.
function axis({ low, high }) {
  const room = 0.08 * (high - low);
  return (value) => `${(100 * (value - low + room)) / (high - low + 2 * room)}%`;
}

function mark(kind, left, ...children) {
  const node = make("span", { class: kind }, ...children);
  node.style.left = left;
  return node;
}

function strip(method, place) {
  if (!method.arms.length) return make("div", { class: "line", role: "img", "aria-label": "Not measured on arms" }, mark("zero", place(0)));
  const [uniform, , greedy] = method.arms[0].numbers;
  const told = `Measured bias ${signed(uniform, 2)} with ε = 1, ${signed(greedy, 2)} with ε = 0.1`;
  return make("div", { class: "line", role: "img", "aria-label": told, title: told }, mark("zero", place(0)), mark("dot hollow", place(greedy)), mark("dot", place(uniform)));
}

function scale(bounds, place) {
  const ticks = [];
  for (let tick = Math.ceil(bounds.low); tick <= bounds.high; tick += 1) ticks.push(mark("tick", place(tick), signed(tick, 0)));
  return make("div", { class: "agent axis" }, make("div", {}), make("div", { class: "line ticks", "aria-hidden": "true" }, ticks));
}

function evidence(method) {
  const lines = [];
  for (const { name, numbers: [uniform8, uniform32, greedy8, greedy32] } of method.arms) {
    lines.push(`${name}: bias ${signed(uniform8, 2)} with 8 arms and ${signed(uniform32, 2)} with 32 (ε = 1); ${signed(greedy8, 2)} and ${signed(greedy32, 2)} (ε = 0.1).`);
  }
  for (const { name, numbers: [bias, , breakout, , asterix] } of method.networks) {
    lines.push(`${name} on MinAtar: bias ${signed(bias, 2)} of the return; scores ${breakout} on Breakout, ${asterix} on Asterix (3 seeds).`);
  }
  return lines.length ? lines : ["We have not measured its bias yet."];
}

function entry(method, place) {
  const deep = method.deep_bias ? `; networks: ${WORDS[method.deep_bias]}` : "";
  const names = [method.deep && make("code", {}, `--agent ${method.deep}`), method.tabular && make("code", {}, method.tabular)].filter(Boolean);
  return make("article", { class: "agent", id: method.deep || method.tabular },
    make("div", {},
      make("h3", {}, method.name),
      make("p", { class: "small" }, method.line),
      make("div", { class: "equation", tabindex: "0", role: "region", "aria-label": `Equation of ${method.name}` }, method.equation.join("\n")),
      make("details", {}, make("summary", {}, "More"), make("p", { class: "small" }, method.text), make("p", { class: "small" }, method.paper)),
    ),
    make("div", {}, strip(method, place),
      make("p", {}, make("span", { class: "tag" }, `${WORDS[method.bias]}${deep}`)),
      evidence(method).map((line) => make("p", { class: "small" }, line)),
      make("p", { class: "small" }, names.flatMap((name, i) => (i ? [" ", name] : [name]))),
    ),
  );
}

const PIXELS_A_LETTER = 6.4;

/** All measured methods on one line, with names above their dots; names that would overlap go to rows further up. */
function overview(methods, width) {
  const measured = methods.filter((method) => method.arms.length).map((method) => ({ ...method, at: method.arms[0].numbers[0] }))
    .sort((one, other) => one.at - other.at);
  const all = measured.map((method) => method.at);
  const [low, high] = [Math.min(...all, 0), Math.max(...all, 0)];
  const named = width >= 700;
  const margin = named ? 90 : 20;
  const place = (value) => margin + ((width - 2 * margin) * (value - low)) / (high - low);
  const ends = [];
  const links = measured.map((method) => {
    const name = method.name.replace(/(.) Q-learning$/, "$1");
    const half = (name.length * PIXELS_A_LETTER) / 2 + 5;
    const found = ends.findIndex((end) => end < place(method.at) - half);
    const row = found < 0 ? ends.length : found;
    ends[row] = place(method.at) + half;
    const words = `${method.name}: bias ${signed(method.at, 2)}`;
    const link = make("a", { class: `method ${method.bias}`, href: `#${method.deep || method.tabular}`, title: words, "aria-label": words }, named ? make("span", {}, name) : null);
    link.style.left = `${place(method.at)}px`;
    link.style.setProperty("--row", named ? row : 0);
    return link;
  });
  const zero = mark("zero", `${place(0)}px`, make("span", {}, "0, no bias"));
  const line = make("div", { class: "one-line", role: "group", "aria-label": "All measured methods, from under- to overestimation" }, zero, links);
  line.style.setProperty("--rows", named ? ends.length : 0);
  return [line, make("p", { class: "small ends" }, make("span", {}, "← underestimates"), make("span", {}, "overestimates →"))];
}

function show(catalogue, only) {
  const { methods } = catalogue;
  const place = axis(catalogue);
  const kept = methods.filter((method) => only === "all" || method.bias === only);
  find("#agents").replaceChildren(scale(catalogue, place), ...kept.map((method) => entry(method, place)));
  find("#filters").replaceChildren(...FILTERS.map(([key, name]) => {
    const count = key === "all" ? methods.length : methods.filter((method) => method.bias === key).length;
    return make("button", { type: "button", "aria-pressed": String(key === only), onclick: () => {
      writeAddress({ only: key === "all" ? "" : key });
      show(catalogue, key);
    } }, `${name} (${count})`);
  }));
}

try {
  const { only = "all" } = addressed();
  const known = FILTERS.some(([key]) => key === only);
  const catalogue = await get("/api/agents");
  show(catalogue, known ? only : "all");
  const line = find("#line");
  new ResizeObserver(() => line.replaceChildren(...overview(catalogue.methods, line.clientWidth))).observe(line);
  document.getElementById(location.hash.slice(1))?.scrollIntoView();
  tellError(known ? null : `There is no filter “${only}”: all methods are shown.`);
} catch (error) {
  tellError(error.message);
}
