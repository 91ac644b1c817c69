// Build the page from data. Text is only ever set as text, never as HTML, whatever a file contains.

export const find = (selector, parent = document) => parent.querySelector(selector);
export const findAll = (selector, parent = document) => [...parent.querySelectorAll(selector)];

function fill(node, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "class") node.setAttribute("class", value);
    else if (name in node && typeof value === "boolean") node[name] = value;
    else if (value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined).map(asNode));
  return node;
}

const asNode = (child) => (child instanceof Node ? child : document.createTextNode(String(child)));

export const make = (tag, properties = {}, ...children) =>
  fill(document.createElement(tag), properties, children);

export const draw = (tag, properties = {}, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), properties, children);

export const swatch = (colour) => {
  const dot = make("span", { class: "swatch", "aria-hidden": "true" });
  // The darkest greens are lightened where the page is dark, as in the charts.
  dot.style.background = `light-dark(${colour}, color-mix(in srgb, ${colour} 70%, white))`;
  return dot;
};

/** A table: columns are {name, number}, rows are lists of text or nodes. */
export function table(columns, rows, caption) {
  const kind = (column) => (column.number ? { class: "number" } : {});
  const head = columns.map((column) => make("th", { scope: "col", ...kind(column) }, column.name));
  const body = rows.map((row) =>
    make("tr", {}, row.map((cell, i) => make(i ? "td" : "th", i ? kind(columns[i]) : { scope: "row" }, cell))));
  const title = caption ? [make("caption", { class: "small" }, caption)] : [];
  return make("div", { class: "wide" }, make("table", {}, title, make("thead", {}, make("tr", {}, head)), make("tbody", {}, body)));
}

/** Call `draw`, which replaces nodes; the node with the same `data-key` as the focused one gets the focus. */
export function keepFocus(draw) {
  const key = document.activeElement?.dataset.key;
  draw();
  if (key) find(`[data-key="${CSS.escape(key)}"]`)?.focus();
}

function tell(box, message) {
  box.textContent = message ?? "";
  box.hidden = !message;
}

/** Show an error in words at the top of the page, or hide it. */
export const tellError = (message) => tell(find("#error"), message);

/** Say what the address asked for that the page cannot show, until the visitor changes something. */
export function tellNotice(messages) {
  tell(find("#notice"), messages.join(" "));
  if (messages.length) addEventListener("input", () => tellNotice([]), { once: true });
}
