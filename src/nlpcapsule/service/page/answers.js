// Rank the answers to a question, for models that do that.

import { rankAnswers } from "./api.js";
import { byId, element, percent, replaceContent, tell, tellError } from "./dom.js";
import { probabilityBar } from "./labels.js";
import { keep, state } from "./state.js";

export function setUpAnswers() {
  byId("document-part").hidden = true;
  byId("labels-part").hidden = true;
  byId("answers-part").hidden = false;
  byId("question").value = state.question;
  byId("answers").value = state.answers;
  for (const name of ["question", "answers"]) {
    byId(name).addEventListener("input", () => { state[name] = byId(name).value; keep(); });
  }
  byId("rank-answers").addEventListener("click", async () => {
    const answers = state.answers.split("\n").map((line) => line.trim()).filter(Boolean);
    if (!state.question.trim() || !answers.length) {
      tellError("Write a question, and at least one answer.");
      return;
    }
    try {
      const found = await rankAnswers(state.question, answers);
      replaceContent(byId("ranked-answers"), found.questions[0].answers.map((row) =>
        element("li", {}, element("span", {}, `${percent(row.score)}  ${row.answer}`), probabilityBar(row.score))));
      tell(`${answers.length} answers ranked.`);
    } catch (error) {
      tellError(error.message);
    }
  });
}
