// Rank the answers to a question and say why, for models that do that.

import { explainAnswers, rankAnswers } from "./api.js";
import { byId, carriers, counted, element, percent, probabilityBar, replaceContent, tell, tellError } from "./dom.js";
import { carrying, drawAnswerExplanation } from "./explanation.js";
import { keep, state } from "./state.js";

const EXPLAINED = 20; // answers that the service explains at a time

export function setUpAnswers() {
  byId("document-part").hidden = true;
  byId("labels-part").hidden = true;
  byId("answers-part").hidden = false;
  byId("answers-part").after(byId("why"));
  byId("question").value = state.question;
  byId("answers").value = state.answers;
  for (const name of ["question", "answers"]) {
    byId(name).addEventListener("input", () => { state[name] = byId(name).value; keep(); });
  }
  byId("rank-answers").addEventListener("click", async () => {
    const question = state.question;
    const answers = state.answers.split("\n").map((line) => line.trim()).filter(Boolean);
    if (!question.trim() || !answers.length) {
      tellError("Write a question, and at least one answer.");
      return;
    }
    try {
      const found = await rankAnswers(question, answers);
      byId("why").hidden = true;
      replaceContent(byId("ranked-answers"), found.questions[0].answers.map((row, place) => answerRow(question, answers, row, place)));
      tell(`${counted(answers.length, "answer")} ranked.`);
    } catch (error) {
      tellError(error.message);
    }
  });
}

function answerRow(question, answers, row, place) {
  const button = element("button", {
    type: "button", class: "choose", "aria-pressed": "false", disabled: place >= EXPLAINED, onclick: () => explain(button, question, answers, row, place),
  }, element("span", { class: "name" }, row.answer), element("span", { class: "percent" }, percent(row.score)), probabilityBar(row.score));
  return element("li", {}, button);
}

async function explain(button, question, answers, row, place) {
  const wasChosen = button.getAttribute("aria-pressed") === "true";
  for (const other of byId("ranked-answers").querySelectorAll(".choose")) other.setAttribute("aria-pressed", String(other === button && !wasChosen));
  if (wasChosen) {
    byId("why").hidden = true;
    return;
  }
  try {
    const found = await explainAnswers(question, answers, place + 1);
    if (button.getAttribute("aria-pressed") !== "true") return; // another was chosen meanwhile
    const explained = found.answers.find((each) => each.position === row.position);
    drawAnswerExplanation(question, row.answer, explained);
    byId("why").scrollIntoView({ block: "nearest" });
    tell(`${carriers(carrying([...explained.question_words, ...explained.answer_words]).length)} this answer.`);
  } catch (error) {
    tellError(error.message);
  }
}

export function closeAnswer() {
  const button = byId("ranked-answers").querySelector('.choose[aria-pressed="true"]');
  button?.setAttribute("aria-pressed", "false");
  button?.focus({ preventScroll: true });
}
