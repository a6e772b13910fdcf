// Build elements. Strings become text nodes, so that no label and no document can become markup.

export const byId = (id) => document.getElementById(id);

export function element(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

export function drawing(tag, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

export function replaceContent(node, ...children) {
  node.replaceChildren(...children.flat());
}

export function probabilityBar(value) {
  return element("span", { class: "bar", "aria-hidden": "true" },
    drawing("svg", { viewBox: "0 0 100 4", preserveAspectRatio: "none" },
      drawing("rect", { x: 0, y: 0, height: 4, width: (100 * value).toFixed(2) })));
}

export const percent = (value) =>
  value >= 0.9995 || value < 0.0005 ? `${(100 * value).toFixed(0)}%` : `${(100 * value).toFixed(1)}%`;

export const counted = (count, noun) => `${count.toLocaleString()} ${noun}${count === 1 ? "" : "s"}`;

export const carriers = (count) => (count === 1 ? "1 word carries" : `${count} words carry`);

let fading = 0;

export function tell(message) {
  clearError();
  byId("status").textContent = message;
  clearTimeout(fading);
  fading = setTimeout(() => { byId("status").textContent = ""; }, 5000);
}

export function tellError(message) {
  byId("status").textContent = "";
  byId("error-box").hidden = false;
  byId("error").textContent = message;
}

export function clearError() {
  byId("error-box").hidden = true;
  byId("error").textContent = "";
}
