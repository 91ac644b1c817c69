// Films of the selected runs, and the button that makes one.

import { find, keepFocus, make, tellError } from "./dom.js";
import { get, post } from "./requests.js";

let timer = 0;
let filming = "";
let wanted = "";
let runs = [];

const made = new Map(); // when a run was filmed from this page: its film is then loaded again

const address = (run, film) => `/films?${new URLSearchParams({ run: run.id, name: film, ...(made.has(run.id) ? { made: made.get(run.id) } : {}) })}`;

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
    return make("button", { type: "button", "data-key": "film button", onclick: () => ask("/api/films/cancel", {}) }, "Filming … cancel");
  }
  return make("button", { type: "button", "data-key": "film button", disabled: state?.state === "filming", onclick: () => ask("/api/films", { run: run.id }) }, "Film this run");
}

function choice(able, run, state) {
  const options = able.map(({ id, label, seed }) => make("option", { value: id, selected: id === run.id }, `${label}, seed ${seed} · ${id}`));
  return make("select", { "data-key": "film", "aria-label": "The run to film", disabled: state?.state === "filming", onchange: (event) => {
    wanted = event.target.value;
    show(state);
  } }, options);
}

function show(state) {
  const films = runs.flatMap((run) => run.films.map((name) => film(run, name)));
  const able = runs.filter((run) => run.steps && run.step > 0);
  const run = able.find(({ id }) => id === (state?.state === "filming" ? state.run : wanted)) ?? able[0];
  const failed = state?.state === "failed" ? make("span", { class: "small", role: "status" }, `${state.run}: ${state.reason}`) : null;
  const row = run ? [make("div", { class: "toolbar" }, choice(able, run, state), button(run, state), failed)] : [];
  const panel = films.length || run ? [make("h2", {}, "Films"), make("div", { class: "films" }, films), ...row] : [];
  keepFocus(() => find("#films").replaceChildren(...panel));
}

async function follow() {
  clearTimeout(timer);
  try {
    const { film: state } = await get("/api/films");
    if (state?.state === "filming") {
      filming = state.run;
      timer = setTimeout(follow, 1000);
    } else if (filming) {
      made.set(filming, Date.now());
      filming = "";
    }
    show(state);
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
