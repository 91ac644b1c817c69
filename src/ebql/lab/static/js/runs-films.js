// Films of the selected runs, and the button that makes one.

import { find, make, tellError } from "./dom.js";
import { get, post } from "./requests.js";

let timer = 0;
let runs = [];

const address = (run, film) => `/films?${new URLSearchParams({ run: run.id, name: film })}`;

function film(run, name) {
  const words = `Film of ${run.label} in ${run.environment}, ${run.id}`;
  const shown = name.endsWith(".mp4")
    ? make("video", { src: address(run, name), controls: true, loop: true, "aria-label": words })
    : make("img", { src: address(run, name), alt: words, loading: "lazy" });
  return make("figure", {}, shown, make("figcaption", { class: "small" }, `${run.label} · ${run.id}/${name}`));
}

async function ask(path, parameters) {
  try {
    await post(path, "", parameters);
    tellError(null);
  } catch (error) {
    tellError(error.message);
  }
  follow();
}

function button(run, state) {
  if (state?.run === run.id && state.state === "filming") {
    return make("button", { type: "button", onclick: () => ask("/api/films/cancel", {}) }, `Filming ${run.label} … cancel`);
  }
  return make("button", { type: "button", disabled: state?.state === "filming", onclick: () => ask("/api/films", { run: run.id }) }, "Film this run");
}

function show(state) {
  const films = runs.flatMap((run) => run.films.map((name) => film(run, name)));
  const can = runs.filter((run) => run.steps && run.step > 0).slice(0, 12);
  const rows = can.map((run) => make("p", {}, button(run, state), make("span", { class: "small" }, ` ${run.label}, seed ${run.seed} · ${run.id}`),
    state?.run === run.id && state.state === "failed" ? make("span", { class: "small" }, ` — ${state.reason}`) : null));
  const panel = films.length || rows.length ? [make("h2", {}, "Films"), make("div", { class: "films" }, films), ...rows] : [];
  find("#films").replaceChildren(...panel);
}

async function follow() {
  clearTimeout(timer);
  try {
    const { film: state } = await get("/api/films");
    show(state);
    if (state?.state === "filming") timer = setTimeout(follow, 1000);
  } catch (error) {
    tellError(error.message);
  }
}

let drawn = "";

export function showFilms(chosen) {
  runs = chosen;
  // A film that plays is not drawn again for each new step of its run.
  const key = JSON.stringify(runs.map((run) => [run.id, run.films, run.step > 0]));
  if (key !== drawn) follow();
  drawn = key;
}
