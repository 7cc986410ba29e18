// What came of a call, wherever it is shown, and the attempts behind it.

import { $, el, inWords, pretty, timeCell, visible } from "/assets/drawn.js";
import { ask } from "/assets/gateway.js";

const MAX_TEXT = 100_000; // characters of one block that are drawn
const MAX_BLOCKS = 100; // of one result
const MAX_ATTEMPTS = 100; // of one call

export const waitsIn = (result) => result.approval != null;
export const isDenied = (result) => result.failure?.reason === "approval_denied";

// Waiting for a person is no failure, and needs none of its colour.
export const kindOf = (span) => ({ success: "good", skipped: "quiet" })[span.outcome] ?? (span.reason === "approval_required" ? "warn" : "bad");

export function outcomeOf(result, { named = false, traced = false } = {}) {
  const { failure } = result, waits = waitsIn(result);
  const kind = waits ? "warn" : result.isError ? "bad" : "good";
  const title = waits ? "waits for approval" : failure ? inWords(failure.reason) : "done";
  const facts = [`request ${result.requestId}`, `${result.attempts} attempt${result.attempts === 1 ? "" : "s"}`,
    result.durationMs == null ? "nothing was run" : `${result.durationMs.toFixed(1)} ms`].join(" · ");
  const { content } = result;
  return el("div", { class: `outcome ${kind}` },
    el("strong", {}, named ? `${result.tool}: ${title}` : title),
    el("p", { class: "quiet" }, facts, ...(traced ? [" · ", attemptsLink(result.requestId)] : [])),
    isDenied(result) ? el("p", { class: "quiet" }, "The model is told:") : null,
    failure ? el("p", {}, failure.message) : null,
    failure?.issues.length ? el("ul", {}, ...failure.issues.map((issue) => el("li", {}, `${issue.path || "the arguments"}: ${issue.message}`))) : null,
    failure ? el("p", {}, failure.guidance) : null,
    ...(failure ? [] : content.slice(0, MAX_BLOCKS).map(blockOf)),
    !failure && content.length > MAX_BLOCKS ? el("p", { class: "quiet" }, `${content.length - MAX_BLOCKS} more parts are not drawn here.`) : null);
}

const attemptsLink = (id) => el("button", { type: "button", class: "link", onclick: () => showAttempts(id) }, "its attempts", el("span", { class: "unseen" }, ` of ${id}`));

function textOf(text) {
  const shown = el("pre", { tabindex: "0" }, text.slice(0, MAX_TEXT));
  return text.length <= MAX_TEXT ? shown
    : el("div", {}, shown, el("p", { class: "quiet" }, `${(text.length - MAX_TEXT).toLocaleString()} more characters are not drawn here.`));
}

function blockOf(block) {
  if (block.type === "text") return textOf(block.text);
  if (block.type === "image" && /^image\/(png|jpeg|gif|webp)$/.test(block.mimeType)) {
    return el("img", { src: `data:${block.mimeType};base64,${block.data}`, alt: "image that the tool gave" });
  }
  return textOf(pretty({ ...block, data: block.data && `${block.data.length} characters` }));
}

// ---- the attempts of one call ---------------------------------------------------------------

let asked = null; // the call whose attempts were asked for last
async function showAttempts(id) {
  asked = id;
  $("attempts-title").textContent = visible(`Attempts of ${id}`);
  $("attempts-body").replaceChildren(el("p", { class: "quiet" }, "Asking for them…"));
  if (!$("attempts").open) $("attempts").showModal();
  const drawn = await attemptsOf(id).catch((error) => el("p", {}, error.message));
  if (asked === id) $("attempts-body").replaceChildren(drawn);
}

async function attemptsOf(id) {
  const found = await ask(`/traces?limit=${MAX_ATTEMPTS}&requestId=${encodeURIComponent(id)}`);
  const whose = found.workers > 1 ? ` Worker ${found.worker} of ${found.workers} was asked; each keeps its own.` : "";
  if (!found.spans.length) return el("p", {}, `None is kept here any more.${whose}`);
  return el("div", {}, el("table", {},
    el("thead", {}, el("tr", {}, ...["time", "attempt", "outcome", "queued ms", "ms"].map((name) => el("th", { scope: "col" }, name)))),
    el("tbody", {}, ...found.spans.reverse().map(attemptRow))),
  whose ? el("p", { class: "quiet" }, whose.trim()) : null);
}

const attemptRow = (span) => el("tr", {},
  timeCell(span.started),
  el("td", {}, span.attempt ? String(span.attempt) : "none"),
  el("td", {}, el("span", { class: kindOf(span) }, span.reason ? inWords(span.reason) : span.outcome),
    ...[...span.verdicts, ...span.mended.map((path) => `mended ${path}`)].map((note) => el("div", { class: "quiet" }, note))),
  el("td", { class: "number" }, span.queueMs.toFixed(1)),
  el("td", { class: "number" }, span.durationMs.toFixed(1)));
