// Why a document has a label, or an answer its score: words in the text, shares, capsules, agreement, similar documents.

import { byId, drawing, element, percent, probabilityBar, replaceContent } from "./dom.js";

const SOURCES = { network: "Network", lexical: "Words", neighbours: "Similar documents", name: "Label name", prior: "Frequency of the label", capsules: "Capsules", overlap: "Word overlap", model: "Model" };
const FEW = 0.02; // smaller shares of a capsule are left out

// Words whose importance is not 0.00 when it is written.
export const carrying = (words) => words.filter((word) => word.importance >= 0.005);

export function drawText(text, words) {
  replaceContent(byId("reading"), marked(text, words));
}

function marked(text, words) {
  const largest = Math.max(...words.map((word) => word.importance), 1e-9);
  const spans = words.flatMap((word) => word.spans.map(([start, end]) => ({ start, end, strength: Math.ceil((4 * word.importance) / largest) || 1 })));
  spans.sort((left, right) => left.start - right.start);
  const characters = Array.from(text); // offsets count characters, JavaScript counts UTF-16 units
  const parts = [];
  let place = 0;
  for (const { start, end, strength } of spans) {
    parts.push(characters.slice(place, start).join(""), element("mark", { class: `s${strength}` }, characters.slice(start, end).join("")));
    place = end;
  }
  parts.push(characters.slice(place).join(""));
  return parts;
}

export function firstMark() {
  byId("reading").querySelector("mark.s4")?.scrollIntoView({ block: "nearest" });
}

function sharesPart(label, others) {
  const shares = Object.entries(label.shares).filter(([, share]) => share >= 0.005);
  if (!shares.length) return [];
  let left = 0;
  const blocks = shares.map(([source, share]) => {
    const block = drawing("rect", { x: left, y: 0, width: 100 * share, height: 10, class: `fill-${source}` });
    left += 100 * share;
    return block;
  });
  return [
    element("h3", {}, `What lifts it above other ${others}`),
    element("div", { class: "stack", "aria-hidden": "true" }, drawing("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none" }, blocks)),
    element("ul", { class: "legend" }, shares.map(([source, share]) =>
      element("li", {}, element("i", { class: `fill-${source}`, "aria-hidden": "true" }), `${SOURCES[source]} ${Math.round(100 * share)}%`))),
  ];
}

function table(headings, rows) {
  return element("table", {},
    element("thead", {}, element("tr", {}, headings.map((heading, index) => element("th", { scope: "col", class: index && index === headings.length - 1 ? "number" : null }, heading)))),
    element("tbody", {}, rows.map((cells) => element("tr", {}, cells.map((cell, index) => element("td", { class: index && index === cells.length - 1 ? "number" : null }, cell))))));
}

function wordsPart(label) {
  const words = carrying(label.words);
  if (!words.length) return [element("p", {}, "No single word speaks for this label: without any one of them it is as likely.")];
  const largest = Math.max(...words.map((word) => word.importance));
  const rows = words.map((word) => [
    [word.spans.length > 1 ? `${word.word} (${word.spans.length}×)` : word.word, probabilityBar(word.importance / largest)],
    word.capsules.filter((capsule) => capsule.share >= FEW).map((capsule) => capsule.capsule).join(", ") || "–",
    `−${word.importance.toFixed(2)}`,
  ]);
  return [element("h3", {}, "Words that carry it"), table(["Word", "Through capsules", "Log-odds without it"], rows)];
}

function capsulesPart(label) {
  if (!label.capsules.length) return [];
  const rows = label.capsules.filter((capsule, place) => !place || capsule.share >= FEW).map((capsule) => [`${capsule.capsule}`, capsule.words.join(", ") || "–", percent(capsule.share)]);
  return [element("h3", {}, "Capsules it was routed from"), table(["Capsule", "Attends to", "Coupling"], rows)];
}

function agreementPart(explanation) {
  const values = explanation.agreement;
  if (!values.length) return [];
  const number = (value) => value.toPrecision(3).replace("-", "−");
  const told = values.map((value, index) => `${index + 1}: ${number(value)}`).join(", ");
  const heading = element("h3", {}, "How agreement settled");
  const line = element("p", { class: "quiet" }, `${explanation.iterations} iterations. Negative agreement score after iteration ${told}.`);
  if (values.length < 2) return [heading, line];
  const low = Math.min(...values);
  const range = Math.max(...values) - low || 1;
  const points = values.map((value, index) => [75 + (210 * index) / (values.length - 1), 15 + 80 * (1 - (value - low) / range)]);
  const picture = drawing("svg", { viewBox: "0 0 360 125", class: "curve", role: "img", "aria-label": `Agreement by iteration. ${told}` },
    drawing("line", { x1: 65, x2: 295, y1: 102, y2: 102 }),
    drawing("polyline", { points: points.map((point) => point.join(",")).join(" ") }),
    points.map(([x, y], index) => [
      drawing("circle", { cx: x, cy: y, r: 4 }),
      drawing("text", { x, y: 118, "text-anchor": "middle" }, `${index + 1}`),
      index && index < points.length - 1 ? null : drawing("text", { x: x + (index ? 10 : -10), y: y + 4, "text-anchor": index ? "start" : "end" }, number(values[index])),
    ]).flat());
  return [heading, picture, line];
}

function similarPart(explanation, label, names) {
  if (!explanation.similar.length) return [];
  const rows = explanation.similar.map((document) => [
    document.id,
    document.labels.flatMap((each, place) => [place ? ", " : "", element(each === label.label ? "strong" : "span", {}, names[each] ?? each)]),
    document.similarity.toFixed(2),
  ]);
  return [element("h3", {}, "Similar training documents"), table(["Document", "Its labels", "Similarity"], rows)];
}

export function drawWaiting(name) {
  byId("why-heading").textContent = `Why ${name}?`;
  replaceContent(byId("why-body"), element("p", { class: "quiet" }, "Leaving out one word after the other, and ranking again…"));
  byId("why").hidden = false;
}

export function drawExplanation(explanation, names) {
  const [label] = explanation.labels;
  byId("why-heading").textContent = `Why ${names[label.label] ?? label.label}? ${percent(label.probability)}`;
  replaceContent(byId("why-body"), sharesPart(label, "labels"), wordsPart(label), capsulesPart(label), agreementPart(explanation), similarPart(explanation, label, names));
  byId("why").hidden = false;
}

export function drawAnswerExplanation(question, answer, explained) {
  byId("why-heading").textContent = `Why this answer? ${percent(explained.probability)}`;
  const text = (title, content, words) => [element("h3", {}, title), element("p", { class: "marked" }, marked(content, carrying(words)))];
  const rows = [...carrying(explained.answer_words).map((word) => [word, "answer"]), ...carrying(explained.question_words).map((word) => [word, "question"])]
    .sort(([left], [right]) => right.importance - left.importance)
    .map(([word, place]) => [word.word, place, `−${word.importance.toFixed(2)}`]);
  replaceContent(byId("why-body"), text("Question", question, explained.question_words), text("Answer", answer, explained.answer_words),
    sharesPart(explained, "answers"), rows.length ? [element("h3", {}, "Words that carry it"), table(["Word", "Of the", "Log-odds"], rows)] : []);
  byId("why").hidden = false;
}
