// The ranked labels of a document: choose one to explain, accept, reject.

import { byId, element, percent, probabilityBar, replaceContent } from "./dom.js";
import { currentDocument, decide, state } from "./state.js";

const shownName = (row) => row.name ?? row.label;

function decisionButton(row, decision, symbol, verb, redraw) {
  const isChosen = currentDocument()[decision].includes(row.label);
  return element("button", {
    type: "button",
    class: decision === "accepted" ? "yes" : "no",
    "aria-pressed": String(isChosen),
    "aria-label": `${verb} ${shownName(row)}`,
    title: verb,
    onclick: () => { decide(row.label, isChosen ? null : decision); redraw(decision); },
  }, symbol);
}

function labelRow(row, chosen, explain, redraw) {
  const document = currentDocument();
  const isAdded = document.added.some((each) => each.label === row.label);
  const redrawHere = (decision) => {
    redraw();
    const again = [...byId("labels").querySelectorAll("li")].find((item) => item.dataset.label === row.label);
    again?.querySelector(decision === "accepted" ? ".yes" : ".no")?.focus();
  };
  const item = element("li", { class: document.rejected.includes(row.label) ? "rejected" : null },
    element("button", {
      type: "button", class: "choose", "aria-pressed": String(chosen === row.label), onclick: () => explain(row.label),
    },
      element("span", { class: "name" }, element("span", { class: "title" }, shownName(row)), row.name ? element("span", { class: "id" }, ` ${row.label}`) : null,
        isAdded ? element("span", { class: "added" }, " added") : null),
      element("span", { class: "percent" }, row.score === null ? "" : percent(row.score)),
      probabilityBar(row.score ?? 0)),
    element("div", { class: "decide" },
      decisionButton(row, "accepted", "✓", "Accept", redrawHere),
      decisionButton(row, "rejected", "✕", "Reject", redrawHere)));
  item.dataset.label = row.label;
  return item;
}

export function allLabels(document) {
  const ranked = document.labels ?? [];
  const known = new Set(ranked.map((row) => row.label));
  return [...ranked, ...document.added.filter((row) => !known.has(row.label))];
}

export function shownLabels(document) {
  const decided = new Set([...document.accepted, ...document.rejected]);
  return allLabels(document).filter((row) => row.score === null || row.score >= state.threshold || decided.has(row.label));
}

export function drawLabels(chosen, explain, redraw) {
  const document = currentDocument();
  const shown = shownLabels(document);
  replaceContent(byId("labels"), shown.map((row) => labelRow(row, chosen, explain, redraw)));
  const hidden = allLabels(document).length - shown.length;
  const below = hidden ? `${hidden} more below ${Math.round(100 * state.threshold)}%` : "";
  const isEmpty = document.labels === null;
  byId("below").textContent = isEmpty && !shown.length
    ? "Labels appear here, best first. Choose one to see why; accept or reject it, and save."
    : shown.length ? below : `No label reaches the threshold. ${below}`;
  byId("accept-shown").hidden = isEmpty || !shown.some((row) => !document.accepted.includes(row.label) && !document.rejected.includes(row.label));
  for (const id of ["slider", "download-json", "download-csv"]) byId(id).hidden = isEmpty;
  byId("labels-part").classList.toggle("empty", isEmpty);
  byId("save").textContent = document.saved ? "Saved ✓" : "Save review";
}
