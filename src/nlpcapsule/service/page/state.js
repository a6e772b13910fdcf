// What the page remembers between reloads. A document: {id, name, text, labels, version, accepted, rejected, added, saved, edited}.

import { tellError } from "./dom.js";

const KEY = "nlpcapsule-review";

const fresh = () => ({ documents: [newDocument()], current: 0, threshold: null, person: "", theme: null, question: "", answers: "" });

export function newDocument(text = "", name = null) {
  const random = crypto.getRandomValues(new Uint32Array(2)); // randomUUID is missing where there is no HTTPS
  return { id: `pasted-${[...random].map((part) => part.toString(16).padStart(8, "0")).join("")}`, name, text, labels: null, version: null, accepted: [], rejected: [], added: [], saved: false };
}

function load() {
  try {
    const kept = JSON.parse(localStorage.getItem(KEY));
    if (Array.isArray(kept?.documents) && kept.documents.length) return { ...fresh(), ...kept };
  } catch {
    // Another version of the page wrote it, or storage is switched off: start over.
  }
  return fresh();
}

export const state = load();

export const currentDocument = () => state.documents[state.current];

let wasTold = false;

export function keep() {
  try {
    localStorage.setItem(KEY, JSON.stringify(state));
  } catch {
    if (!wasTold) tellError("These documents are too large to be remembered after a reload.");
    wasTold = true;
  }
}

export function setDocuments(documents) {
  state.documents = documents.length ? documents : [newDocument()];
  state.current = 0;
  keep();
}

export function decide(label, decision) {
  const document = currentDocument();
  for (const list of [document.accepted, document.rejected]) {
    const place = list.indexOf(label);
    if (place >= 0) list.splice(place, 1);
  }
  if (decision) document[decision].push(label);
  document.saved = false;
  keep();
}
