// Search the vocabulary, walk up and down its hierarchy, and add labels.

import { findLabels, searchLabels } from "./api.js";
import { byId, element, replaceContent, tellError } from "./dom.js";

const MOST_NEIGHBOURS = 12;

function neighbours(title, labels, names, walk) {
  if (!labels.length) return null;
  const more = labels.length - MOST_NEIGHBOURS;
  return element("div", { class: "path" }, `${title}:`,
    labels.slice(0, MOST_NEIGHBOURS).map((label) => element("button", { type: "button", class: "plain", onclick: () => walk([label]) }, names[label] ?? label)),
    more > 0 ? element("button", { type: "button", class: "plain", onclick: () => walk(labels) }, `and ${more} more`) : null);
}

function resultRow(entry, names, walk, add) {
  const count = entry.documents === 1 ? "1 document" : `${entry.documents} documents`;
  return element("li", {},
    element("span", {}, entry.name ?? entry.label, element("span", { class: "quiet" }, ` ${entry.name ? `${entry.label}, ` : ""}${entry.known ? count : "not a label of the model"}`)),
    element("button", { type: "button", "aria-label": `Add ${entry.name ?? entry.label}`, onclick: () => add(entry) }, "Add"),
    neighbours("broader", entry.broader, names, walk),
    neighbours("narrower", entry.narrower, names, walk));
}

export function setUpVocabulary(add) {
  let latest = 0;
  let waiting = 0;

  const show = async (search) => {
    const mine = ++latest;
    try {
      const found = await search();
      if (mine !== latest) return; // an answer to an earlier search
      byId("found").textContent = found.total === 1 ? "1 label" : `${found.total} labels${found.total > found.labels.length ? `, the first ${found.labels.length}` : ""}`;
      replaceContent(byId("results"), found.labels.map((entry) => resultRow(entry, found.names, walk, add)));
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
    waiting = setTimeout(() => show(() => searchLabels(query)), 150);
  });
}
