// Search the vocabulary, walk up and down its hierarchy, and add labels.

import { findLabels, searchLabels } from "./api.js";
import { byId, counted, element, replaceContent, tellError } from "./dom.js";

const MOST_NEIGHBOURS = 12;

function neighbours(title, labels, names, walk) {
  if (!labels.length) return null;
  const more = labels.length - MOST_NEIGHBOURS;
  return element("div", { class: "path" }, `${title}:`,
    labels.slice(0, MOST_NEIGHBOURS).map((label) => element("button", { type: "button", class: "plain", onclick: () => walk([label]) }, names[label] ?? label)),
    more > 0 ? element("button", { type: "button", class: "plain", onclick: () => walk(labels) }, `and ${more} more`) : null);
}

// A label that the model learns with `nlpcapsule learn`; none if the vocabulary has it.
function newLabel(query, found) {
  const isKnown = found.labels.some((entry) => [entry.label, entry.name].includes(query));
  return isKnown ? [] : [{ label: query, name: null, known: false, isNew: true, broader: [], narrower: [] }];
}

function resultRow(entry, names, walk, add) {
  const count = entry.isNew ? "a new label" : entry.documents === 1 ? "1 document" : `${entry.documents} documents`;
  return element("li", {},
    element("span", {}, entry.name ?? entry.label, element("span", { class: "quiet" }, ` ${entry.name ? `${entry.label}, ` : ""}${entry.known || entry.isNew ? count : "not a label of the model"}`)),
    element("button", { type: "button", "aria-label": `Add ${entry.name ?? entry.label}`, onclick: () => add(entry) }, "Add"),
    neighbours("broader", entry.broader, names, walk),
    neighbours("narrower", entry.narrower, names, walk));
}

export function setUpVocabulary(add) {
  let latest = 0;
  let waiting = 0;

  const show = async (search, query) => {
    const mine = ++latest;
    try {
      const found = await search();
      if (mine !== latest) return; // an answer to an earlier search
      byId("found").textContent = (found.total ? counted(found.total, "label") : "No label matches") + (found.total > found.labels.length ? `, the first ${found.labels.length}` : "");
      const entries = [...found.labels, ...(query ? newLabel(query, found) : [])];
      replaceContent(byId("results"), entries.map((entry) => resultRow(entry, found.names, walk, add)));
    } catch (error) {
      tellError(error.message);
    }
  };
  const walk = (labels) => show(() => findLabels(labels));

  byId("search").addEventListener("input", () => {
    const query = byId("search").value.trim();
    clearTimeout(waiting);
    if (!query) {
      latest += 1;
      byId("found").textContent = "";
      replaceContent(byId("results"));
      return;
    }
    waiting = setTimeout(() => show(() => searchLabels(query), query), 150);
  });
}
