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

/** Fill the controls of a form from parameters; return a sentence for each that is out of range. */
export function fillForm(form, parameters) {
  return named(form).flatMap((control) => {
    const value = parameters[control.name];
    if (value === undefined) return [];
    if (control.type === "checkbox") control.checked = value === "1";
    else control.value = value;
    if (control.tagName === "SELECT" && control.selectedIndex < 0) {
      control.selectedIndex = 0;
      return [misfit(control, value, [...control.options].map((option) => option.value).join(", "))];
    }
    if (control.type === "range" && Number(control.value) !== Number(value)) return [misfit(control, value, `from ${control.min} to ${control.max}, in steps of ${control.step || 1}`)];
    return [];
  });
}

const misfit = (control, value, range) => `${control.name} must be ${range}, not “${String(value).slice(0, 40)}”: ${control.value} is shown.`;

/** Return the values of a form's controls. */
export function formValues(form) {
  const values = {};
  for (const control of named(form)) {
    if (control.type === "checkbox") values[control.name] = control.checked ? "1" : "";
    else values[control.name] = control.value;
  }
  return values;
}

/** Show beside each slider what it says. */
export function showValues(form) {
  for (const output of findAll("output[for]", form)) output.textContent = document.getElementById(output.htmlFor.value).value;
}
