// Paste or drop a table; the answer comes in the words of `ebql best-k`.

import { find, findAll, make, table, tellError } from "./dom.js";
import { latest, post } from "./requests.js";

const EXAMPLES = {
  buttons: "variant,visitors,conversions\ncontrol,4000,201\ngreen,4000,214\nlarge,4000,239\nround,4000,205\nred,4000,221\nquiet,4000,190\n",
  times: "old,new,newest\n12.1,13.0,11.2\n10.4,12.2,14.8\n11.8,15.1,13.9\n9.9,12.7,12.0\n12.6,11.9,15.5\n10.8,14.0,13.1\n",
};

const text = find("#csv");

/** Each arm's mean as a dot; the winner's interval before and after the correction. */
function picture({ arms, intervals }) {
  const numbers = [...arms.map((arm) => arm.mean), ...intervals.naive, ...intervals.corrected];
  const [low, high] = [Math.min(...numbers), Math.max(...numbers)];
  const place = (value) => 3 + (94 * (value - low)) / (high - low || 1);
  const row = (words, marks) => {
    const line = make("div", { class: "line" });
    for (const [kind, left, right] of marks) {
      const mark = make("span", { class: kind });
      mark.style.left = `${place(left)}%`;
      if (right !== undefined) mark.style.width = `${place(right) - place(left)}%`;
      mark.style.setProperty("--own", kind.includes("late") ? "#009e73" : kind.includes("early") ? "#d55e00" : "#7a8794");
      line.append(mark);
    }
    return [words, line];
  };
  const [naive, naiveLow, naiveHigh] = intervals.naive;
  const [worth, worthLow, worthHigh] = intervals.corrected;
  return make("div", { class: "before-after" }, table([{ name: "" }, { name: "" }], [
    row("All arms", arms.map((arm) => ["run-dot", arm.mean])),
    row("The winner as measured", [["interval early", naiveLow, naiveHigh], ["middle early", naive]]),
    row("The winner, corrected", [["interval late", worthLow, worthHigh], ["middle late", worth]]),
  ]));
}

function show(told) {
  const control = find("#control");
  const chosen = control.value;
  control.replaceChildren(make("option", { value: "" }, "no control"), ...told.arms.map((arm) => make("option", { value: arm.name }, arm.name)));
  control.value = chosen;
  const numeric = (name) => ({ name, number: true });
  find("#answer").replaceChildren(
    make("p", { class: "headline" }, told.headline), picture(told), make("p", {}, told.recommendation), make("p", { class: "small" }, told.estimand),
    ...told.cautions.map((caution) => make("p", { class: "caution" }, caution)),
    table([{ name: "Arm" }, numeric("Samples"), numeric("Mean")], told.arms.map((arm) => [arm.won ? `${arm.name} — won` : arm.name, arm.samples.toLocaleString("en"), arm.shown])),
    make("h3", {}, "Estimates and their expected errors"),
    table([{ name: "Estimate" }, numeric("Value"), numeric("Bias"), numeric("RMSE")], told.values.map((value) => [value.recommended ? `${value.name} — use this` : value.name, value.shown, value.bias, value.rmse])),
    make("details", {}, make("summary", {}, "The methods"), make("dl", { class: "small" }, told.values.flatMap((value) => [make("dt", {}, value.name), make("dd", {}, value.explanation)]))),
    make("p", { class: "small" }, told.read.join(" ")));
}

const update = latest(async (signal) => {
  if (!text.value.trim()) return;
  show(await post("/api/winner", text.value, { control: find("#control").value }, signal));
}, tellError, 250);

async function take(file) {
  if (!file) return;
  text.value = await file.text();
  find("#control").replaceChildren(make("option", { value: "" }, "no control"));
  update();
}

text.addEventListener("input", update);
find("#control").addEventListener("input", update);
find("#form").addEventListener("submit", (event) => event.preventDefault());
find("#file").addEventListener("change", (event) => take(event.target.files[0]));
for (const button of findAll("[data-example]")) {
  button.addEventListener("click", () => {
    text.value = EXAMPLES[button.dataset.example];
    find("#control").replaceChildren(make("option", { value: "" }, "no control"));
    update();
  });
}
addEventListener("dragover", (event) => event.preventDefault());
addEventListener("drop", (event) => {
  event.preventDefault();
  take(event.dataTransfer.files[0]).catch((error) => tellError(error.message));
});
