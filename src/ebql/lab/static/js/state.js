// The state of a page is in its address, so that a view can be shared.

import { findAll } from "./dom.js";

const named = (form) => findAll("[name]", form);

/** Return the parameters of the address. */
export const addressed = () => Object.fromEntries(new URLSearchParams(location.search));

export function writeAddress(parameters) {
  const kept = Object.entries(parameters).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const query = new URLSearchParams(kept).toString();
  history.replaceState(null, "", query ? `?${query}` : location.pathname);
}

/** Fill the controls of a form from parameters. */
export function fillForm(form, parameters) {
  for (const control of named(form)) {
    const value = parameters[control.name];
    if (value === undefined) continue;
    if (control.type === "checkbox") control.checked = value === "1";
    else if (control.type === "radio") control.checked = control.value === value;
    else control.value = value;
  }
}

/** Return the values of a form's controls. */
export function formValues(form) {
  const values = {};
  for (const control of named(form)) {
    if (control.type === "checkbox") values[control.name] = control.checked ? "1" : "";
    else if (control.type === "radio") values[control.name] = control.checked ? control.value : values[control.name];
    else values[control.name] = control.value;
  }
  return values;
}

/** Show beside each slider what it says. */
export function showValues(form) {
  for (const output of findAll("output[for]", form)) {
    const control = document.getElementById(output.htmlFor.value);
    const names = output.dataset.values?.split("|");
    output.textContent = names ? names[Number(control.value)] : control.value;
  }
}
