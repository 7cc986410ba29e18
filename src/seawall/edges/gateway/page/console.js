// The page draws what the gateway says and nothing else. Texts are set as text, never as markup.
//
// Nobody's press may fall on something else than they saw. So what a person decides about stays
// where it is, what comes later waits until it is asked for, and what did move settles first.

import { begin, byHand } from "/assets/settled.js";
import { UNSEEN } from "/assets/unseen.js";

const $ = (id) => document.getElementById(id);
const store = {
  may: {}, tools: new Map(), spans: [], // what the gateway said
  cards: new Map(), fresh: new Set(), left: { more: 0, after: null }, // requests that are shown, and those that came since
  state: "all", page: 0, // which tools are listed
  chosen: null, detail: null, waiting: null, // the tool that is looked at
};
const WAITING = "/approvals?status=pending";
const MAX_SPANS = 200;
const MAX_ROWS = 50; // of the spans that are shown
const MAX_FRESH = 1000; // more are counted as so many
const PAGE = 100; // rows of the list at once, however many tools there are

const STATES = {
  runnable: ["runnable", "good"],
  not_released: ["not released on this console", "warn"],
  locked: ["locked: needs approval", "warn"],
  blocked: ["blocked", "bad"],
};
const COUNTS = [
  ["all", "all"],
  ["runnable", "runnable now"],
  ["locked", "needs approval"],
  ["not_released", "not released"],
  ["blocked", "blocked"],
];
const isIn = (state, tool) => state === "all" || (state === "locked" ? tool.needConfirm : tool.state === state);

// Characters that are not seen, or turn the order of others, would let a call look like another.
const visible = (text) => text.replace(UNSEEN, (one) => `\\u{${one.codePointAt(0).toString(16).padStart(4, "0")}}`);

function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value != null) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child != null).map((child) => (typeof child === "string" ? visible(child) : child)));
  return made;
}

const badge = (text, kind = "") => el("span", { class: `badge ${kind}` }, text);
const pretty = (value) => JSON.stringify(value, null, 2);
const clockTime = (seconds) => {
  const time = new Date(seconds * 1000);
  const today = time.toDateString() === new Date().toDateString();
  return today ? time.toLocaleTimeString() : time.toLocaleString(); // an approval waits for days
};

// ---- the gateway ---------------------------------------------------------------------------

function headers(more = {}) {
  const token = sessionStorage.getItem("seawall-token");
  return token ? { ...more, Authorization: `Bearer ${token}` } : more;
}

async function ask(path, options = {}) {
  let response;
  try {
    response = await fetch(path, { ...options, headers: headers(options.headers) });
  } catch {
    throw new Error("The gateway cannot be reached.");
  }
  const body = await response.json();
  if (!response.ok) {
    const failure = body.failure;
    throw Object.assign(new Error(failure ? `${failure.message}. ${failure.guidance}` : `status ${response.status}`), { status: response.status });
  }
  return body;
}

const send = (path, data) =>
  ask(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(data) });

// Said of what was sent: whether it came, nobody here knows. A fault of the page is none of this.
class Gone extends Error {
  constructor() {
    super("The gateway went away before it answered. Whether the call ran is not known: see the latest attempts.");
  }
}

async function* eventsOf(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = "";
  for (;;) {
    const { value, done } = await reader.read().catch(() => { throw new Gone(); });
    if (done) return;
    buffer += value;
    let end;
    while ((end = buffer.indexOf("\n\n")) >= 0) {
      const lines = buffer.slice(0, end).split("\n");
      buffer = buffer.slice(end + 2);
      const found = Object.fromEntries(lines.filter((line) => !line.startsWith(":")).map((line) => {
        const colon = line.indexOf(": ");
        return [line.slice(0, colon), line.slice(colon + 2)];
      }));
      if (found.event) yield { event: found.event, data: JSON.parse(found.data ?? "null") };
    }
  }
}

function warn(message) {
  $("banner").hidden = !message;
  $("banner").textContent = visible(message ?? "");
}

async function load() {
  const isFirst = !store.tools.size;
  let found = null;
  try {
    const { name, may } = await ask("/client");
    const [tools, spans, approvals] = await Promise.all([
      may.call ? ask("/tools?view=brief") : null,
      may.call ? ask(`/traces?limit=${MAX_SPANS}`) : null,
      may.approve ? ask(WAITING) : null,
    ]);
    Object.assign(store, { may, spans: spans?.spans ?? [] });
    store.tools = new Map((tools?.tools ?? []).map((tool) => [tool.name, taken(tool)]));
    drawWho(name);
    warn(may.call || may.approve ? "" : "This gateway wants a token: choose Token… above.");
    found = approvals ?? { approvals: [], more: 0, after: null };
  } catch (error) {
    warn(error.status === 401 ? "This gateway wants a token: choose Token… above." : error.message);
  }
  if (isFirst) byHand(draw);
  else draw();
  if (found) await compare(found);
}

// Written in small letters once, so that a search need not do it for each tool at each key.
const taken = (tool) => ({ ...tool, words: `${tool.name} ${tool.title ?? ""} ${tool.description}`.toLowerCase() });

// What changed of some tools. Only where they came, went or moved is the list drawn anew.
function changed({ all, tools, defined, gone }) {
  if (all) return later(load);
  let moved = gone.length > 0;
  for (const name of gone) store.tools.delete(name);
  for (const tool of tools) {
    const before = store.tools.get(tool.name);
    moved ||= !before || ["state", "needConfirm", "riskLevel", "family", "category"].some((key) => before[key] !== tool[key]);
    store.tools.set(tool.name, taken(tool));
    if (!moved) drawRow(tool);
  }
  if (moved) {
    drawCounts();
    drawFamilies();
    drawList();
  }
  if (defined.includes(store.chosen)) describe(store.chosen);
  else if (gone.includes(store.chosen)) leave();
  else drawFacts();
}

// Once for a burst.
const coming = new Map();
function later(work, wait = 400) {
  if (coming.has(work)) return;
  coming.set(work, setTimeout(() => {
    coming.delete(work);
    work();
  }, wait));
}

// A stream tells what the token may know that it was asked for with: another token, another stream.
let watching = new AbortController();
function watchAnew() {
  store.cards.clear(); // another may be asked about other things
  showApprovals({ approvals: [], more: 0, after: null });
  watching.abort();
}

function noted(span) {
  store.spans.unshift(span);
  store.spans.length = Math.min(store.spans.length, MAX_SPANS);
  later(drawSpans, 100);
}

async function watch() {
  let wait = 500;
  for (;;) {
    watching = new AbortController();
    try {
      const response = await fetch("/events", { headers: headers(), signal: watching.signal });
      if (!response.ok) throw new Error(String(response.status));
      await load(); // what was missed before there was a stream
      $("live").textContent = "live";
      wait = 500;
      for await (const { event, data } of eventsOf(response)) {
        if (event === "hello" && data.workers) $("live").textContent = `live, from worker ${data.worker} of ${data.workers}`;
        if (event === "span") noted(data);
        if (event === "tools") changed(data);
        if (event === "approval") decided(data);
        if (event === "resumed") showResumed(data);
      }
    } catch {
      // The stream is asked for again below, whatever ended it; if it cannot be had, this says why.
      if (!watching.signal.aborted) await load();
    }
    if (watching.signal.aborted) continue;
    $("live").textContent = "not live: asking again";
    await new Promise((resolve) => setTimeout(resolve, wait));
    wait = Math.min(wait * 2, 10_000);
  }
}

// ---- drawing -------------------------------------------------------------------------------

function draw() {
  drawCounts();
  drawFamilies();
  drawList();
  drawFacts();
  $("spans").replaceChildren();
  drawSpans();
}

// What had the focus is found again by its key; where it is gone, what took its place is next.
function keepFocus(container, redraw) {
  const focused = container.contains(document.activeElement) ? document.activeElement : null;
  const key = focused?.dataset.key, at = [...container.querySelectorAll("[data-key]")].indexOf(focused);
  const before = container.scrollTop;
  redraw();
  container.scrollTop = before;
  if (!key) return;
  const now = [...container.querySelectorAll("[data-key]")];
  (now.find((one) => one.dataset.key === key) ?? now[Math.min(at, now.length - 1)])?.focus({ preventScroll: true });
}

function drawWho(name) {
  const can = { call: "list and call tools", approve: "see and answer approvals", admin: "open and close circuits" };
  const [may, not] = [true, false].map((wanted) => Object.keys(can).filter((scope) => store.may[scope] === wanted).map((scope) => can[scope]));
  const said = [may.length ? `may ${may.join(", ")}` : null, not.length ? `may not ${not.join(", ")}` : null].filter(Boolean);
  for (const one of document.querySelectorAll("[data-needs-call]")) one.hidden = !store.may.call;
  $("who").textContent = `You are ${visible(name)}: ${said.join("; ")}.`;
}

function drawCounts() {
  const tools = [...store.tools.values()];
  const counts = Object.fromEntries(COUNTS.map(([state]) => [state, tools.filter((tool) => isIn(state, tool)).length]));
  keepFocus($("counts"), () => {
    $("counts").replaceChildren(...COUNTS.map(([state, words]) =>
      el("li", {}, el("button", {
        type: "button", "data-key": state, "aria-pressed": String(store.state === state),
        onclick: () => byHand(() => { store.state = state; drawCounts(); filter(); }),
      }, el("b", {}, String(counts[state])), words))));
  });
}

function drawFamilies() {
  const select = $("family");
  const families = [...new Set([...store.tools.values()].map(familyOf))].sort();
  const shown = [...select.options].slice(1).map((option) => option.value);
  if (families.join("\n") === shown.join("\n")) return;
  const chosen = select.value;
  select.replaceChildren(el("option", { value: "" }, "any"), ...families.map((name) => el("option", { value: name }, name)));
  select.value = families.includes(chosen) ? chosen : "";
}

const familyOf = (tool) => tool.family ?? tool.category;

function fitting() {
  const wanted = $("search").value.trim().toLowerCase();
  const risk = $("risk").value, family = $("family").value, confirm = $("confirm").checked;
  return [...store.tools.values()].filter((tool) => isIn(store.state, tool)
    && (!risk || tool.riskLevel === risk)
    && (!family || familyOf(tool) === family)
    && (!confirm || tool.needConfirm)
    && (!wanted || tool.words.includes(wanted)));
}

function filter() {
  store.page = 0;
  drawList();
}

function drawList() {
  if (!store.may.call) {
    $("shown").textContent = "";
    $("list").replaceChildren(el("li", { class: "quiet" }, "To list and call tools, give a token that may call."));
    $("pages").hidden = true;
    return;
  }
  const found = fitting();
  const pages = Math.max(Math.ceil(found.length / PAGE), 1);
  store.page = Math.min(store.page, pages - 1);
  const first = store.page * PAGE;
  const rows = found.slice(first, first + PAGE);
  const part = pages > 1 ? `, ${first + 1} to ${first + rows.length} shown` : "";
  $("shown").textContent = `${found.length} of ${store.tools.size} tools${part}`;
  $("pages").hidden = pages === 1;
  $("earlier").disabled = store.page === 0;
  $("more").disabled = store.page === pages - 1;
  keepFocus($("list"), () => $("list").replaceChildren(...rows.map(rowOf)));
}

function turn(pages) {
  store.page += pages;
  drawList();
  $("list").scrollTop = 0;
  $("list").querySelector("button")?.focus();
}

function rowOf(tool) {
  const [words, kind] = STATES[tool.state];
  return el("li", {}, el("button", {
    type: "button", "data-key": tool.name, "data-settles": `tool ${tool.name}`, "aria-current": String(tool.name === store.chosen),
    onclick: () => choose(tool.name),
  }, el("span", { class: "name" }, tool.name),
  el("span", { class: "line" }, badge(words, kind), `${tool.riskLevel} risk`, breakerWords(tool))));
}

const buttonOf = (name) => $("list").querySelector(`[data-key="${CSS.escape(name)}"]`);

function drawRow(tool) {
  const shown = buttonOf(tool.name)?.parentElement;
  if (shown) keepFocus($("list"), () => shown.replaceWith(rowOf(tool)));
}

const breakerWords = (tool) => (tool.breaker && tool.breaker !== "closed" ? badge(`circuit ${tool.breaker.replace("_", "-")}`, "bad") : null);

async function choose(name) {
  const before = store.chosen;
  store.chosen = name;
  if (before !== name) byHand(() => clearDetail(name, "Asking for it…"));
  for (const one of [before, name]) buttonOf(one ?? "")?.setAttribute("aria-current", String(one === name));
  await describe(name, byHand);
  if (store.chosen === name) $("detail").focus();
}

async function describe(name, draws = (work) => work()) {
  try {
    const found = await ask(`/tools/${encodeURIComponent(name)}`);
    if (store.chosen !== name) return; // another was chosen meanwhile
    store.detail = found;
    draws(drawDetail);
  } catch (error) {
    if (store.chosen !== name) return;
    // A heading must never stand above the form of another tool.
    clearDetail(name, `It cannot be shown: ${error.message}`);
    warn(error.message);
  }
}

function clearDetail(title, words) {
  store.detail = null;
  $("detail-title").textContent = visible(title);
  $("detail-body").replaceChildren(el("p", { class: "quiet" }, words));
}

function leave() {
  store.chosen = null;
  clearDetail("This tool is gone", "Choose another.");
}

// What was asked for when it was chosen, and what became of it since.
const chosenTool = () => store.detail && { ...store.detail, ...store.tools.get(store.detail.name) };

function drawDetail() {
  const tool = chosenTool();
  if (!tool) return;
  const typed = $("try")?.dataset.tool === tool.name ? argumentsOf($("try")) : null; // it was defined anew
  const body = [
    el("p", {}, tool.description),
    el("dl", { class: "facts", id: "facts" }),
    el("h3", {}, "Try it"),
    formOf(tool),
    el("div", { id: "outcome", role: "status" }),
    el("details", {}, el("summary", {}, "Schema of the arguments"), el("pre", { tabindex: "0" }, pretty(tool.inputSchema))),
    ...(tool.outputSchema ? [el("details", {}, el("summary", {}, "Schema of the result"), el("pre", { tabindex: "0" }, pretty(tool.outputSchema)))] : []),
    el("details", {}, el("summary", {}, "Policy"), el("pre", { tabindex: "0" }, pretty(tool.policy))),
  ];
  $("detail-title").textContent = visible(tool.title ? `${tool.name}: ${tool.title}` : tool.name);
  $("detail-body").replaceChildren(...body);
  if (typed) fill($("try"), typed);
  drawFacts();
}

function drawFacts() {
  const tool = chosenTool();
  if (!tool || !$("facts")) return;
  const [words, kind] = STATES[tool.state];
  const hints = Object.entries(tool.annotations).map(([hint, value]) => `${hint}: ${value}`).join(", ");
  const recent = store.spans.filter((span) => span.tool === tool.name).slice(0, 10);
  const facts = [
    ["state", badge(words, kind)],
    ["why", tool.quarantined],
    ["risk", tool.riskLevel],
    ["hints", hints || "none given"],
    ["retried", tool.retrySafe ? "yes, if it fails" : "no, a second call may have a second effect"],
    ["circuit", tool.breaker ?? "none"],
    ["rate", tool.rate ? `${tool.rate.limit}${tool.rate.left == null ? "" : `, ${tool.rate.left} left`}` : "no limit"],
    ["recent", recent.length ? recent.map((span) => span.reason || span.outcome).join(", ") : "nothing yet"],
  ];
  $("facts").replaceChildren(...facts.filter(([, value]) => value).flatMap(([name, value]) => [el("dt", {}, name), el("dd", { class: name === "recent" && "line" }, value)]));
  const run = $("run");
  if (run) run.disabled = run.dataset.busy === "true" || tool.state === "not_released" || tool.state === "blocked";
}

// Rows that are there stay, so that who reads among them, or has marked some, loses nothing.
let newest = null;
function drawSpans() {
  const body = $("spans");
  const known = body.childElementCount ? store.spans.indexOf(newest) : -1;
  const fresh = store.spans.slice(0, known < 0 ? MAX_ROWS : Math.min(known, MAX_ROWS));
  if (known < 0) body.replaceChildren();
  body.prepend(...fresh.map(spanRow));
  while (body.childElementCount > MAX_ROWS) body.lastElementChild.remove();
  newest = store.spans[0] ?? null;
  drawFacts();
}

const spanRow = (span) => el("tr", {},
  el("td", {}, clockTime(span.started)),
  el("td", {}, span.tool, span.attempt > 1 ? ` (attempt ${span.attempt})` : ""),
  el("td", { class: span.outcome === "success" ? "good" : "bad" }, span.reason ? span.reason.replaceAll("_", " ") : span.outcome),
  el("td", {}, span.durationMs.toFixed(1)));

// ---- the form ------------------------------------------------------------------------------

let forms = 0; // another form of the same tool is another one to run
function formOf(tool) {
  const properties = Object.entries(asObject(tool.inputSchema.properties));
  const required = new Set(Array.isArray(tool.inputSchema.required) ? tool.inputSchema.required : []);
  const fields = properties.map(([name, schema], index) => fieldOf(name, asObject(schema), required.has(name), `field-${index}`));
  const form = el("form", { id: "try", "data-tool": tool.name, autocomplete: "off", novalidate: true, onsubmit: (event) => { event.preventDefault(); run(tool, form); } },
    ...fields,
    properties.length ? null : el("p", { class: "quiet" }, "It takes no arguments."),
    el("p", { class: "buttons" },
      el("button", { type: "submit", id: "run", "data-settles": `run ${forms += 1}`, class: "primary", disabled: tool.state === "not_released" || tool.state === "blocked" },
        tool.state === "locked" ? "Ask for approval" : "Run"),
      tool.example ? el("button", { type: "button", onclick: () => fill(form, tool.example.arguments) }, "Fill in the example") : null));
  return form;
}

// A schema may be `true` or `false`, and one that nobody vouches for may be anything.
const asObject = (schema) => (schema !== null && typeof schema === "object" && !Array.isArray(schema) ? schema : {});
const asWords = (value) => (typeof value === "string" ? value : value === undefined ? null : JSON.stringify(value));

function typesOf(schema) {
  const variants = [schema.anyOf, schema.oneOf].find(Array.isArray) ?? [];
  if (schema.type === undefined && variants.some((variant) => asObject(variant).type === undefined)) return new Set(); // any JSON
  const types = [schema.type, ...variants.map((variant) => asObject(variant).type)].flat();
  return new Set(types.filter((type) => typeof type === "string" && type !== "null"));
}

function fieldOf(name, schema, required, id) {
  const types = typesOf(schema);
  const only = types.size === 1 ? [...types][0] : null;
  // Not `name`: a form has its controls as members under their names, before its own.
  const common = { id, "data-name": name, "data-kind": "json", "aria-describedby": `${id}-hint`, "aria-required": String(required) };
  let input;
  if (Array.isArray(schema.enum)) {
    input = el("select", { ...common, "data-kind": "choice" }, el("option", { value: "" }, required ? "choose" : "leave out"),
      ...schema.enum.map((value) => el("option", { value: JSON.stringify(value) }, typeof value === "string" ? value : JSON.stringify(value))));
  } else if (only === "boolean") {
    input = el("select", { ...common, "data-kind": "choice" }, el("option", { value: "" }, required ? "choose" : "leave out"),
      el("option", { value: "true" }, "true"), el("option", { value: "false" }, "false"));
  } else if (only === "string") {
    const secret = schema.format === "password" || schema.writeOnly === true;
    input = secret ? el("input", { ...common, type: "password", "data-kind": "text" })
      : el("textarea", { ...common, rows: (schema.maxLength ?? 1000) > 120 ? 2 : 1, "data-kind": "text" });
  } else if (only === "integer" || only === "number") {
    input = el("input", { ...common, type: "text", inputmode: only === "integer" ? "numeric" : "decimal", "data-kind": "number" });
  } else {
    input = el("textarea", { ...common, rows: 2 });
  }
  const kind = types.size ? [...types].join(" or ") : "any JSON";
  const hint = [asWords(schema.description), `${kind}${required ? ", required" : ""}`, "default" in schema ? `default ${JSON.stringify(schema.default)}` : null]
    .filter(Boolean).join(" · ");
  return el("div", { class: "field" }, el("label", { for: id }, name), input, el("span", { class: "hint", id: `${id}-hint` }, hint));
}

const inputsOf = (form) => [...form.querySelectorAll("[data-name]")];

function fill(form, values) {
  for (const input of inputsOf(form)) {
    const value = Object.hasOwn(values, input.dataset.name) ? values[input.dataset.name] : undefined;
    if (value === undefined) input.value = "";
    else if (input.dataset.kind === "text" && typeof value === "string") input.value = value;
    else input.value = JSON.stringify(value, null, input.dataset.kind === "json" ? 1 : 0);
  }
}

// What cannot be read is sent as it was typed: the gateway says better what is wrong with it.
function valueOf(input) {
  if (input.dataset.kind === "text") return input.value;
  try {
    return JSON.parse(input.value);
  } catch {
    return input.value;
  }
}

function argumentsOf(form) {
  const filled = inputsOf(form).filter((input) => input.value !== "");
  return Object.fromEntries(filled.map((input) => [input.dataset.name, valueOf(input)]));
}

async function called(call, progress) {
  const response = await fetch("/console/call", {
    method: "POST",
    headers: headers({ "Content-Type": "application/json", Accept: "text/event-stream" }),
    body: JSON.stringify(call),
  }).catch(() => { throw new Gone(); });
  if (!response.headers.get("content-type")?.startsWith("text/event-stream")) return response.json().catch(() => { throw new Gone(); });
  for await (const { event, data } of eventsOf(response)) {
    if (event === "result") return data;
    if (event === "progress") progress(data);
  }
  throw new Gone();
}

async function run(tool, form) {
  const outcome = $("outcome"), button = $("run");
  const requestId = newId();
  button.dataset.busy = "true";
  button.disabled = true;
  outcome.replaceChildren(el("p", { class: "quiet" }, `running as ${requestId}…`));
  const progress = (data) => outcome.replaceChildren(el("p", { class: "quiet" }, progressWords(data)));
  try {
    showResult(tool, await called({ tool: tool.name, arguments: argumentsOf(form), requestId }, progress));
  } catch (error) {
    const words = error instanceof Gone ? error.message : `This page cannot do that: ${error.message}`;
    outcome.replaceChildren(el("div", { class: "outcome bad" }, words));
  }
  button.dataset.busy = "false";
  drawFacts();
}

function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return `console-${[...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

const progressWords = ({ message, done, total }) => `${message}${done == null ? "" : ` (${done}${total == null ? "" : ` of ${total}`})`}`;

function showResult(tool, result) {
  if (store.chosen !== tool.name || !$("outcome")) return;
  const failure = result.failure;
  const waits = result.approval != null;
  store.waiting = waits ? result.requestId : null;
  const kind = waits ? "warn" : result.isError ? "bad" : "good";
  const title = waits ? "waits for approval" : failure ? failure.reason.replaceAll("_", " ") : "done";
  const facts = [`request ${result.requestId}`, `${result.attempts} attempt${result.attempts === 1 ? "" : "s"}`,
    result.durationMs == null ? "nothing was run" : `${result.durationMs.toFixed(1)} ms`].join(" · ");
  $("outcome").replaceChildren(el("div", { class: `outcome ${kind}` },
    el("strong", {}, title), el("p", { class: "quiet" }, facts),
    failure ? el("p", {}, failure.message) : null,
    failure?.issues.length ? el("ul", {}, ...failure.issues.map((issue) => el("li", {}, `${issue.path || "the arguments"}: ${issue.message}`))) : null,
    failure ? el("p", {}, failure.guidance) : null,
    ...(failure ? [] : result.content.map(blockOf))));
}

// What was asked for here is shown here, once somebody has approved it and it was run.
function showResumed({ id, results }) {
  const card = store.cards.get(id), failed = results.find((result) => result.isError)?.failure;
  if (card) verdict(card, failed ? `Approved; ${failed.reason.replaceAll("_", " ")}: ${failed.message}` : `${VERDICTS.done}.`);
  const mine = results.find((result) => result.requestId === store.waiting);
  const tool = mine && store.tools.get(mine.tool);
  if (tool) showResult(tool, mine);
}

function blockOf(block) {
  if (block.type === "text") return el("pre", { tabindex: "0" }, block.text);
  if (block.type === "image" && /^image\/(png|jpeg|gif|webp)$/.test(block.mimeType)) {
    return el("img", { src: `data:${block.mimeType};base64,${block.data}`, alt: "image that the tool gave" });
  }
  return el("pre", { tabindex: "0" }, pretty({ ...block, data: block.data && `${block.data.length} characters` }));
}

// ---- approvals -----------------------------------------------------------------------------

// A card is made once, as the request was when it was shown, and changes in its own place alone:
// what it says is what its buttons answer. One that is answered keeps its place too, until the list
// is asked for anew.

function cardOf(approval) {
  const { id, calls } = approval, key = `reason-${id}`;
  const tools = [...new Set(calls.map((call) => call.tool))].join(", ");
  const decisions = calls.map(() => el("span", { class: "quiet" }));
  const reason = el("input", { type: "text", id: key, maxlength: 300 });
  const until = approval.expires ? ` · until ${clockTime(approval.expires)}` : "";
  const who = approval.caller ? ` · by ${approval.caller}` : "";
  const button = (decision, words, kind) => el("button", {
    type: "button", class: kind, "data-key": `${decision}-${id}`, "data-settles": `${decision} ${id}`, "aria-describedby": `which-${id}`,
    onclick: () => answer(card, decision, reason.value),
  }, words, el("span", { class: "unseen" }, ` ${tools}`));
  const approve = button("approve", "Approve", "primary");
  const bodies = calls.map((call) => el("pre", { tabindex: "0", "aria-label": `arguments of ${call.tool}` }, call.arguments));
  // What was not shown nobody has seen, so it cannot be approved before.
  const cut = calls.some((call) => call.argumentsCut);
  approve.disabled = cut;
  const warning = cut && el("p", { class: "outcome warn" }, "Part of the arguments is not shown. ",
    el("button", { type: "button", "data-key": `all-${id}`, onclick: () => showAll(card) }, "Show all of them"));
  const controls = el("div", {},
    warning || null,
    el("label", { for: key, class: "hint" }, "Reason (of a denial the model reads it) "), reason,
    el("p", { class: "buttons" }, approve, button("deny", "Deny")));
  const node = el("li", { "data-request": id, tabindex: "-1" },
    ...calls.flatMap((call, at) => [
      el("p", {}, el("strong", {}, call.tool), " ", badge(`${call.risk} risk`, "warn"), " ", decisions[at]),
      call.server ? el("p", {}, `on ${call.server}`) : null,
      el("p", { class: "quiet" }, call.reason),
      bodies[at],
      el("p", { class: "digest" }, `digest ${call.digest}`)]),
    el("p", { class: "quiet", id: `which-${id}` }, `${id} · asked ${clockTime(approval.created)}${who}${until}`),
    controls);
  const card = { approval, node, controls, decisions, approve, bodies, warning, waits: true, busy: false };
  return card;
}

async function showAll(card) {
  const { id, calls } = card.approval;
  try {
    const whole = await ask(`/approvals/${encodeURIComponent(id)}`);
    if (!card.waits) return;
    if (whole.calls.some((call, at) => call.digest !== calls[at].digest)) throw new Error(`${id} asks about something else now.`);
    whole.calls.forEach((call, at) => { card.bodies[at].textContent = visible(call.arguments); });
    const left = whole.calls.some((call) => call.argumentsCut);
    card.warning.replaceChildren(left ? "They are too long to be shown: part of them is missing." : "All of the arguments are shown; scroll in them.");
    card.approve.disabled = false;
    card.bodies[calls.findIndex((call) => call.argumentsCut)].focus();
  } catch (error) {
    warn(error.message);
  }
}

function showApprovals({ approvals, more, after }) {
  const cards = approvals.map((approval) => {
    const known = store.cards.get(approval.id);
    return known?.waits ? known : cardOf(approval);
  });
  store.cards = new Map(cards.map((card) => [card.approval.id, card]));
  store.left = { more, after };
  store.fresh.clear();
  $("approvals").replaceChildren(...cards.map((card) => card.node));
  drawWaiting();
}

function drawWaiting() {
  const waiting = [...store.cards.values()].filter((card) => card.waits).length, fresh = store.fresh.size;
  const said = !store.may.approve ? "To see and answer approvals, give a token that may approve."
    : [waiting || !fresh ? (waiting ? `${waiting} shown` : "Nothing waits") : null, fresh ? `${fresh}${fresh < MAX_FRESH ? "" : " or more"} new` : null]
      .filter(Boolean).join(", ") + ".";
  if ($("waiting").textContent !== said) $("waiting").textContent = said;
  $("show-new").disabled = !fresh;
  const { more, after } = store.left;
  $("older-bar").hidden = !after;
  $("left").textContent = after ? `${more}${more < MAX_FRESH ? "" : " or more"} older wait` : "";
}

// Below those that are shown, so that nothing moves.
async function showOlder() {
  const { after } = store.left;
  try {
    const page = await ask(`${WAITING}&after=${encodeURIComponent(after)}`);
    if (store.left.after !== after) return; // the list was asked for anew meanwhile
    const older = page.approvals.filter((approval) => !store.cards.has(approval.id)).map(cardOf);
    for (const card of older) store.cards.set(card.approval.id, card);
    store.left = { more: page.more, after: page.after };
    $("approvals").append(...older.map((card) => card.node));
    older[0]?.node.focus();
    drawWaiting();
  } catch (error) {
    warn(error.message);
  }
}

// Whether a person may be about to press something of what is shown.
function isLookedAt() {
  const cards = [...store.cards.values()], list = $("approvals");
  return cards.some((card) => card.waits) || (cards.length > 0 && (list.matches(":hover") || list.contains(document.activeElement)));
}

function decided(approval) {
  if (!store.may.approve) return;
  const card = store.cards.get(approval.id);
  if (card) change(card, approval);
  else if (approval.status !== "pending") store.fresh.delete(approval.id);
  else if (store.fresh.size < MAX_FRESH) store.fresh.add(approval.id);
  if (store.fresh.size && !isLookedAt()) later(showNew, 100);
  else later(drawWaiting, 200);
}

async function showNew() {
  try {
    showApprovals(await ask(WAITING));
  } catch (error) {
    warn(error.message);
  }
}

const newestShown = () => Math.max(0, ...[...store.cards.values()].map((card) => card.approval.created));

// What became of the requests while there was no stream.
async function compare(found) {
  if (!store.may.approve || !isLookedAt()) return showApprovals(found);
  const waiting = new Set(found.approvals.map((approval) => approval.id));
  for (const { id, created } of found.approvals) if (!store.cards.has(id) && created >= newestShown()) store.fresh.add(id);
  for (const card of store.cards.values()) {
    const { id } = card.approval;
    if (card.waits && !waiting.has(id)) change(card, await ask(`/approvals/${encodeURIComponent(id)}`).catch(() => card.approval));
  }
  drawWaiting();
}

const VERDICTS = {
  approved: "Approved", taken: "Approved; it runs", done: "Approved, and run", denied: "Denied", expired: "Expired",
  withdrawn: "Taken back by who asked", unknown: "Approved; whether it took effect is not known",
};

function change(card, approval) {
  if (approval.status === "pending") {
    approval.calls.forEach((call, at) => { card.decisions[at].textContent = call.decision ? "approved already" : ""; });
    return;
  }
  const by = [...new Set(approval.calls.map((call) => call.decidedBy).filter(Boolean))].join(", ");
  verdict(card, `${VERDICTS[approval.status] ?? approval.status}${by ? `, by ${by}` : ""}.`);
}

function verdict(card, words) {
  card.waits = false;
  card.node.style.minHeight = `${card.node.getBoundingClientRect().height}px`; // what is below it stays where it is
  const had = card.controls.contains(document.activeElement);
  const said = el("p", { class: "verdict", tabindex: "-1" }, words.length > 160 ? `${words.slice(0, 160)}…` : words);
  card.controls.replaceChildren(said);
  if (had) said.focus({ preventScroll: true });
}

async function answer(card, decision, reason) {
  if (card.busy) return;
  card.busy = true;
  const { id, calls } = card.approval;
  try {
    decided(await send(`/approvals/${encodeURIComponent(id)}`, { decision, reason, digests: calls.map((call) => call.digest) }));
    warn("");
  } catch (error) {
    warn(error.message);
    decided(await ask(`/approvals/${encodeURIComponent(id)}`).catch(() => card.approval));
  }
  card.busy = false;
}

// ---- what the reader does ------------------------------------------------------------------

for (const id of ["search", "risk", "family", "confirm"]) $(id).addEventListener("input", () => byHand(filter));
$("earlier").addEventListener("click", () => byHand(() => turn(-1)));
$("more").addEventListener("click", () => byHand(() => turn(1)));
$("older").addEventListener("click", showOlder);
$("show-new").addEventListener("click", async () => {
  await showNew();
  $("approvals-title").focus();
});
$("filters").addEventListener("submit", (event) => event.preventDefault());
$("open-token").addEventListener("click", () => $("token-dialog").showModal());
$("token-dialog").addEventListener("close", () => {
  const said = $("token-dialog").returnValue;
  if (said === "use" && $("token").value.trim()) sessionStorage.setItem("seawall-token", $("token").value.trim());
  if (said === "forget") sessionStorage.removeItem("seawall-token");
  $("token").value = "";
  if (said !== "use" && said !== "forget") return;
  watchAnew();
});

begin(() => warn("The page has just moved: look again, then press."));
watch();
