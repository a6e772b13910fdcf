// Read files and folders into the queue of documents.

import { byId, counted, tell, tellError } from "./dom.js";
import { keep, newDocument, setDocuments, state } from "./state.js";

const TEXT = /\.(txt|text|md|html?|xml|eml|tex|rst|csv|tsv|log)$/i;

// So that a file that is reviewed twice is one document, and another file of the same name is not.
function fingerprint(text) {
  let hash = 2166136261; // FNV-1a
  for (let place = 0; place < text.length; place += 1) hash = Math.imul(hash ^ text.charCodeAt(place), 16777619);
  return (hash >>> 0).toString(16).padStart(8, "0");
}

async function documentsIn(file) {
  const text = await file.text();
  const name = file.webkitRelativePath || file.name;
  if (!/\.jsonl$/i.test(file.name)) return [{ ...newDocument(text, name), id: `${name} ${fingerprint(text)}` }];
  return text.split("\n").filter((line) => line.trim()).map((line, index) => {
    const row = JSON.parse(line);
    const document = newDocument(String(row.text ?? ""), `${name}, row ${index + 1}`);
    if (row.id !== undefined && row.id !== null && row.id !== "") document.id = String(row.id);
    return document;
  });
}

async function queueFiles(files, open) {
  const readable = [...files].filter((file) => file.type.startsWith("text/") || TEXT.test(file.name) || /\.jsonl$/i.test(file.name));
  readable.sort((left, right) => (left.webkitRelativePath || left.name).localeCompare(right.webkitRelativePath || right.name));
  const found = [];
  const unreadable = [];
  for (const file of readable) {
    try {
      found.push(...await documentsIn(file));
    } catch {
      unreadable.push(file.name);
    }
  }
  if (!found.length) {
    tellError("No text was found in these files: give .txt, .md, .html or .jsonl.");
    return;
  }
  setDocuments(found);
  open();
  tell(`${counted(found.length, "document")} queued.`);
  if (unreadable.length) tellError(`Not readable as JSON Lines: ${unreadable.join(", ")}`);
}

export function drawQueue() {
  const count = state.documents.length;
  const document = state.documents[state.current];
  byId("queue").hidden = count < 2 && !document.name;
  const saved = state.documents.filter((each) => each.saved).length;
  byId("queue-place").textContent = `${state.current + 1} of ${count}${document.name ? `: ${document.name}` : ""}${document.saved ? " ✓ saved" : ""}${count > 1 ? ` (${saved} saved)` : ""}`;
  byId("previous").disabled = state.current === 0;
  byId("next").disabled = state.current === count - 1;
  byId("save-next").hidden = count < 2;
  byId("save").hidden = count > 1;
  byId("save-next").textContent = state.current === count - 1 ? "Save the last" : "Save and next";
  byId("clear").hidden = count > 1;
}

export function move(step, open) {
  const place = state.current + step;
  if (place < 0 || place >= state.documents.length) return;
  state.current = place;
  keep();
  open();
}

export function setUpQueue(open) {
  for (const id of ["files", "folder"]) {
    byId(id).addEventListener("change", async () => {
      await queueFiles(byId(id).files, open);
      byId(id).value = "";
    });
  }
  byId("previous").addEventListener("click", () => move(-1, open));
  byId("next").addEventListener("click", () => move(1, open));
  byId("empty-queue").addEventListener("click", () => { setDocuments([]); open(); });
  const isFiles = (event) => event.dataTransfer?.types.includes("Files");
  addEventListener("dragover", (event) => { if (isFiles(event)) { event.preventDefault(); document.body.classList.add("dropping"); } });
  addEventListener("dragleave", (event) => { if (!event.relatedTarget) document.body.classList.remove("dropping"); });
  addEventListener("drop", (event) => {
    document.body.classList.remove("dropping");
    if (!isFiles(event)) return;
    event.preventDefault();
    queueFiles(event.dataTransfer.files, open);
  });
}
