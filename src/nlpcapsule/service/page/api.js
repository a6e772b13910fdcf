// Call the service.

const TOKEN = "nlpcapsule-token";

export class ServiceError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export function setToken(token) {
  sessionStorage.setItem(TOKEN, token);
}

async function call(path, options = {}) {
  const token = sessionStorage.getItem(TOKEN);
  const headers = { ...(options.body ? { "Content-Type": "application/json" } : {}) };
  if (token) headers.Authorization = `Bearer ${token}`;
  let response;
  try {
    response = await fetch(path, { ...options, headers });
  } catch {
    throw new ServiceError(0, "The service does not answer. Is it still running?");
  }
  const content = await response.json().catch(() => ({}));
  if (!response.ok) throw new ServiceError(response.status, content.detail ?? `The service answered ${response.status}.`);
  return content;
}

const post = (path, value) => call(path, { method: "POST", body: JSON.stringify(value) });

export const getModel = () => call("v1/model");
export const rankLabels = (text, topK) => post("v1/labels", { documents: [{ text }], top_k: topK });
export const explainLabel = (text, label) => post("v1/explain", { text, labels: [label] });
export const rankAnswers = (question, answers) => post("v1/answers", { questions: [{ question, answers }] });
export const explainAnswers = (question, answers, topK) => post("v1/answers/explain", { question, answers, top_k: topK });
export const sendFeedback = (review) => post("v1/feedback", review);
export const searchLabels = (query, limit = 20) => call(`v1/vocabulary?${new URLSearchParams({ query, limit })}`);
export const findLabels = (labels) => call(`v1/vocabulary?${new URLSearchParams(labels.map((label) => ["label", label]))}`);
