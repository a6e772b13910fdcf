// Download the labels of all ranked documents.

import { element } from "./dom.js";
import { allLabels } from "./labels.js";
import { state } from "./state.js";

function decisionOf(document, label) {
  if (document.accepted.includes(label)) return "accepted";
  return document.rejected.includes(label) ? "rejected" : "";
}

function rows() {
  return state.documents.filter((document) => document.labels !== null).map((document) => ({
    id: document.id,
    name: document.name,
    version: document.version,
    labels: allLabels(document)
      .filter((row) => row.score === null || row.score >= state.threshold || decisionOf(document, row.label))
      .map((row) => ({ label: row.label, name: row.name, score: row.score, decision: decisionOf(document, row.label) || null })),
  }));
}

// A cell that begins like a formula would be run by a spreadsheet.
const cell = (value) => {
  const text = value === null || value === undefined ? "" : String(value);
  return `"${(/^[=+\-@\t\r]/.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`;
};

export function asJson() {
  return JSON.stringify(rows(), null, 2);
}

export function asCsv() {
  const lines = rows().flatMap((document) => document.labels.map((row) =>
    [document.id, document.name, row.label, row.name, row.score, row.decision].map((value) => (typeof value === "number" ? value : cell(value))).join(",")));
  return ["document,file,label,name,probability,decision", ...lines].join("\r\n") + "\r\n";
}

export function download(name, type, content) {
  const url = URL.createObjectURL(new Blob([content], { type }));
  const link = element("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
