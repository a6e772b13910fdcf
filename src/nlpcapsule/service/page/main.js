// The page: one document at a time, its labels, and why it has them.

import { explainLabel, getModel, rankLabels, sendFeedback, setToken } from "./api.js";
import { closeAnswer, setUpAnswers } from "./answers.js";
import { asCsv, asJson, download } from "./downloads.js";
import { byId, carriers, clearError, counted, tell, tellError } from "./dom.js";
import { carrying, drawExplanation, drawText, drawWaiting, firstMark } from "./explanation.js";
import { drawLabels, shownLabels } from "./labels.js";
import { drawQueue, move, setUpQueue } from "./queue.js";
import { currentDocument, decide, keep, newDocument, state } from "./state.js";
import { setUpVocabulary } from "./vocabulary.js";

const RANKED = 50;
const NARROW = matchMedia("(max-width: 60rem)"); // one column, as in style.css
let model = null;
let chosen = null;

function redraw() {
  drawLabels(chosen, explain, redraw);
  drawQueue();
}

function open() {
  const document = currentDocument();
  chosen = null;
  byId("text").value = document.text;
  byId("why").hidden = true;
  byId("beyond").hidden = true;
  byId("editing").hidden = document.labels !== null;
  byId("reading-part").hidden = document.labels === null;
  drawText(document.text, []);
  redraw();
  if (document.labels === null && document.name && !document.edited && document.text.trim()) suggest();
}

async function suggest() {
  const document = currentDocument();
  if (!document.text.trim()) {
    tellError("There is no text yet: paste one, or drop a file.");
    byId("text").focus();
    return;
  }
  byId("suggest").disabled = true;
  byId("suggest").textContent = "Reading…";
  try {
    const found = await rankLabels(document.text, Math.min(RANKED, model.labels));
    Object.assign(document, { labels: found.documents[0].labels, version: found.version, edited: false });
    keep();
    if (found.version !== model.version) drawModel(await getModel()); // a new one was swapped in
    if (document === currentDocument()) {
      open();
      tell(`${counted(document.labels.filter((row) => row.score >= state.threshold).length, "label")} suggested.`);
      byId("labels").querySelector("button")?.focus({ preventScroll: true });
    }
  } catch (error) {
    fail(error);
  } finally {
    byId("suggest").disabled = false;
    byId("suggest").textContent = "Suggest labels";
  }
}

async function explain(label) {
  const document = currentDocument();
  if (chosen === label) {
    closeExplanation();
    return;
  }
  chosen = label;
  redraw();
  focusChosen();
  drawText(document.text, []);
  drawWaiting(byId("labels").querySelector('.choose[aria-pressed="true"] .name')?.firstChild.textContent ?? label);
  if (NARROW.matches) byId("document-part").scrollIntoView(); // the list is below the text
  try {
    const { explanation, names } = await explainLabel(document.text, label);
    if (chosen !== label || document !== currentDocument()) return; // another was chosen meanwhile
    const words = carrying(explanation.labels[0].words);
    drawText(document.text, words);
    firstMark();
    drawExplanation(explanation, names);
    const length = Array.from(document.text).length;
    byId("beyond").hidden = explanation.read_until >= length - 1;
    byId("beyond").textContent = `The model reads the first ${explanation.read_until.toLocaleString()} of ${length.toLocaleString()} characters.`;
    tell(`${carriers(words.length)} “${names[label] ?? label}”.`);
  } catch (error) {
    byId("why").hidden = true;
    fail(error);
  }
}

function focusChosen() {
  byId("labels").querySelector('.choose[aria-pressed="true"]')?.focus({ preventScroll: true });
}

function closeExplanation() {
  const label = chosen;
  chosen = null;
  byId("why").hidden = true;
  if (model.task === "answers") {
    closeAnswer();
    return;
  }
  drawText(currentDocument().text, []);
  redraw();
  const row = [...byId("labels").children].find((item) => item.dataset.label === label);
  row?.querySelector(".choose").focus({ preventScroll: !NARROW.matches });
}

async function save() {
  const document = currentDocument();
  if (!document.accepted.length && !document.rejected.length) {
    tellError("Accept or reject a label first.");
    return false;
  }
  try {
    await sendFeedback({ document_id: document.id, person: state.person, text: document.text, accepted: document.accepted, rejected: document.rejected });
    document.saved = true;
    keep();
    redraw();
    tell("Review saved.");
    return true;
  } catch (error) {
    fail(error);
    return false;
  }
}

function add(entry) {
  const document = currentDocument();
  const isRanked = document.labels?.some((row) => row.label === entry.label);
  if (!isRanked && !document.added.some((row) => row.label === entry.label)) {
    document.added.push({ label: entry.label, name: entry.name, score: null });
  }
  decide(entry.label, "accepted");
  redraw();
  tell(`${entry.name ?? entry.label} added.`);
}

function acceptShown() {
  const document = currentDocument();
  const open = shownLabels(document).filter((row) => !document.accepted.includes(row.label) && !document.rejected.includes(row.label));
  for (const row of open) decide(row.label, "accepted");
  redraw();
  tell(`${counted(open.length, "label")} accepted.`);
}

function fail(error) {
  if (error.status === 401) {
    byId("token-form").hidden = false;
    byId("token").focus();
  }
  tellError(error.message);
}

function setThreshold(value) {
  state.threshold = value;
  byId("threshold").value = Math.round(100 * value);
  byId("threshold-value").textContent = `${Math.round(100 * value)}%`;
}

function setTheme() {
  const isDark = state.theme ? state.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  if (state.theme) document.documentElement.dataset.theme = state.theme;
  byId("theme").textContent = isDark ? "Light" : "Dark";
  return isDark;
}

function listen() {
  byId("text").addEventListener("input", () => { currentDocument().text = byId("text").value; keep(); });
  byId("text").addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) suggest(); });
  byId("suggest").addEventListener("click", suggest);
  byId("sample").addEventListener("click", () => { currentDocument().text = model.example; keep(); suggest(); });
  byId("edit").addEventListener("click", () => {
    const document = currentDocument();
    Object.assign(document, { labels: null, version: null, saved: false, edited: true });
    keep();
    open();
    byId("text").focus();
  });
  byId("clear").addEventListener("click", () => { state.documents[state.current] = newDocument(); keep(); open(); byId("text").focus(); });
  byId("threshold").addEventListener("input", () => { setThreshold(byId("threshold").value / 100); keep(); redraw(); });
  byId("accept-shown").addEventListener("click", acceptShown);
  byId("dismiss").addEventListener("click", clearError);
  byId("close-why").addEventListener("click", closeExplanation);
  byId("save").addEventListener("click", save);
  byId("save-next").addEventListener("click", async () => { if (await save()) move(1, open); });
  byId("person").addEventListener("input", () => { state.person = byId("person").value; keep(); });
  byId("download-json").addEventListener("click", () => download("labels.json", "application/json", asJson()));
  byId("download-csv").addEventListener("click", () => download("labels.csv", "text/csv", asCsv()));
  byId("theme").addEventListener("click", () => { state.theme = setTheme() ? "light" : "dark"; keep(); setTheme(); });
  byId("token-form").addEventListener("submit", (event) => {
    event.preventDefault();
    setToken(byId("token").value);
    byId("token-form").hidden = true;
    start();
  });
}

function drawModel(found) {
  model = found;
  const size = model.labels === null ? "ranks answers" : counted(model.labels, "label");
  byId("model-line").textContent = [...new Set([model.name, model.system, size])].join(" · ");
  byId("model-line").title = `Version ${model.version}`;
}

async function start() {
  try {
    drawModel(await getModel());
  } catch (error) {
    fail(error);
    return;
  }
  clearError();
  if (model.task === "answers") {
    setUpAnswers();
    return;
  }
  byId("saving").hidden = !model.accepts_feedback;
  byId("sample").hidden = model.example === null;
  byId("person").value = state.person;
  setThreshold(state.threshold ?? model.threshold ?? 0.5);
  open();
}

setTheme();
listen();
setUpQueue(open);
setUpVocabulary(add);
start();
