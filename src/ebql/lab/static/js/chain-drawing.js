// The Meta-Chain as a picture: one chain, and the means of all of them.

import { draw, make } from "./dom.js";

const STATES = { A: [60, 70], C: [200, 28], B: [200, 112], D: [400, 112] };
const RADIUS = 17;

function state(name, [x, y], terminal = false) {
  const rings = [draw("circle", { cx: x, cy: y, r: RADIUS, fill: "var(--wash)", stroke: "var(--ink)", "stroke-width": 1.4 })];
  if (terminal) rings.push(draw("circle", { cx: x, cy: y, r: RADIUS - 4, fill: "none", stroke: "var(--ink)", "stroke-width": 0.8 }));
  return [...rings, draw("text", { x, y: y + 5, "text-anchor": "middle", fill: "var(--ink)", "font-size": 14 }, name)];
}

function arrow([x1, y1], [x2, y2], bend = 0) {
  const length = Math.hypot(x2 - x1, y2 - y1);
  const [ux, uy] = [(x2 - x1) / length, (y2 - y1) / length];
  const from = [x1 + ux * RADIUS, y1 + uy * RADIUS];
  const to = [x2 - ux * (RADIUS + 3), y2 - uy * (RADIUS + 3)];
  const middle = [(from[0] + to[0]) / 2 - uy * bend, (from[1] + to[1]) / 2 + ux * bend];
  return draw("path", { d: `M${from} Q${middle} ${to}`, fill: "none", stroke: "var(--soft)", "stroke-width": 1.2, "marker-end": "url(#tip)" });
}

const label = (x, y, words) => draw("text", { x, y, fill: "var(--soft)", "font-size": 12.5 }, words);

/** Draw one chain with its actions, and beside it the mean of each chain. */
export function drawing(means, actions) {
  const { A, B, C, D } = STATES;
  const shown = Math.min(actions, 7);
  const many = Array.from({ length: shown }, (_, i) => arrow(B, D, (i - (shown - 1) / 2) * 13));
  const tip = draw("defs", {}, draw("marker", { id: "tip", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" },
    draw("path", { d: "M0 0 8 4 0 8z", fill: "var(--soft)" })));
  const chain = draw("svg", { viewBox: "0 0 560 165", class: "chain", role: "img",
    "aria-label": `One chain: from A, the safe action ends in C with reward 0; the risky one leads to B, where ${actions} actions end in D with a noisy reward.` },
  tip, arrow(A, C), arrow(A, B), many, state("A", A), state("B", B), state("C", C, true), state("D", D, true),
  label(100, 36, "safe"), label(100, 112, "risky"), label(228, 32, "reward 0, the end"),
  label(428, 117, "reward N(μ, 1)"), label(255, 160, `${actions} ${actions === 1 ? "action" : "actions"}, all alike`));
  const tags = means.map((mean) => make("li", { class: mean > 0 ? "pays" : "costs" }, `μ = ${mean}`.replace("-", "−")));
  return make("div", { class: "meta-chain" }, chain, make("ul", { "aria-label": "Means of the chains" }, tags));
}
