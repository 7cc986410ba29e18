// The page draws what the gateway says and nothing else. Texts are set as text, never as markup.
//
// Nobody's press may fall on something else than they saw. So what a person decides about stays
// where it is, what comes later waits until it is asked for, and what did move settles first.

import { $, badge, clockTime, el, inWords, pretty, timeCell, visible } from "/assets/drawn.js";
import { argumentsOf, fieldsOf, fill, typeInto, typedIn } from "/assets/form.js";
import { Gone, ask, called, eventsOf, hasToken, headers, refusalOf, send, useToken } from "/assets/gateway.js";
import { isDenied, kindOf, outcomeOf, waitsIn } from "/assets/results.js";
import { begin, byHand } from "/assets/settled.js";

const store = {
  name: "", may: {}, tools: new Map(), spans: [], // what the gateway said
  cards: new Map(), fresh: new Set(), left: { more: 0, after: null }, // requests that are shown, and those that came since
  answered: new Set(), // requests that wait no more, whatever an older answer says
  state: "all", page: 0, // which tools are listed
  chosen: null, detail: null, made: null, waiting: null, // the tool that is looked at, the call that was made last, and if it waits
};
const WAITING = "/approvals?status=pending";
const MAX_SPANS = 200;
const MAX_ROWS = 50; // of the spans that are shown
const MAX_FRESH = 1000; // more are counted as so many
const PAGE = 100; // rows of the list at once, however many tools there are
const FIRST_WAIT_MS = 500; // before the stream is asked for again; each time twice as long, up to the last
const LAST_WAIT_MS = 10_000;
const STEADY_MS = 5_000; // a stream that lasted as long was one
const SILENT_MS = 45_000; // three times what the gateway lets pass between two signs of life

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

// ---- the gateway ---------------------------------------------------------------------------

function warn(message) {
  $("banner").hidden = !message;
  $("banner").textContent = visible(message ?? "");
}

// One at a time, so that no answer that was slow takes the place of a newer one.
let loading = null, next = null;
function load() {
  if (loading) return next ??= loading.then(() => { next = null; return load(); });
  const mine = loading = loadOnce().finally(() => { if (loading === mine) loading = null; });
  return mine;
}

let identity = 0; // another with each token: what was asked for with a former one is not drawn
let since = null; // what was told while all was asked for: it may be newer than the answer
async function loadOnce() {
  const as = identity, isFirst = !store.tools.size, known = new Set(store.fresh);
  const meanwhile = since = { spans: [], changes: [] };
  let found = null;
  try {
    const { name, may } = await ask("/client");
    const [tools, spans, approvals] = await Promise.all([
      may.call ? ask("/tools?view=brief") : null,
      may.call ? ask(`/traces?limit=${MAX_SPANS}`) : null,
      may.approve ? ask(WAITING) : null,
    ]);
    if (as !== identity) return;
    Object.assign(store, { name, may, spans: spans?.spans ?? [] });
    store.tools = new Map((tools?.tools ?? []).map((tool) => [tool.name, taken(tool)]));
    for (const span of meanwhile.spans) keep(span);
    for (const { tools: others, gone } of meanwhile.changes) keepTools(others, gone);
    drawWho();
    warn(may.call || may.approve ? "" : NO_TOKEN);
    found = approvals ?? { approvals: [], more: 0, after: null };
  } catch (error) {
    if (as !== identity) return;
    warn(error.status === 401 ? UNKNOWN_TOKEN : error.message);
  } finally {
    if (since === meanwhile) since = null;
  }
  if (isFirst) byHand(draw);
  else draw();
  if (!found) return;
  if (store.chosen !== null && !store.tools.has(store.chosen)) leave();
  else if (store.chosen !== null) describe(store.chosen);
  await compare(found, known);
}

const NO_TOKEN = "This gateway wants a token: choose Token… above.";
const UNKNOWN_TOKEN = "The token of this tab is not known to the gateway, which may have made another since: choose Token… above.";

// Written in small letters once, so that a search need not do it for each tool at each key.
const taken = (tool) => ({ ...tool, words: `${tool.name} ${tool.title ?? ""} ${tool.description}`.toLowerCase() });

// What changed of some tools. Only where they came, went or moved is the list drawn anew.
function changed({ all, tools, defined, gone }) {
  if (all) return later(load);
  since?.changes.push({ tools, gone });
  if (keepTools(tools, gone)) {
    drawCounts();
    drawFamilies();
    drawList();
  } else {
    tools.forEach(drawRow);
  }
  if (defined.includes(store.chosen)) describe(store.chosen);
  else if (gone.includes(store.chosen)) leave();
  else drawFacts();
}

// Whether any came, went or is in another place of the list now.
function keepTools(tools, gone) {
  let moved = gone.length > 0;
  for (const name of gone) store.tools.delete(name);
  for (const tool of tools) {
    const before = store.tools.get(tool.name);
    moved ||= !before || ["state", "needConfirm", "riskLevel", "family", "category"].some((key) => before[key] !== tool[key]);
    store.tools.set(tool.name, taken(tool));
  }
  return moved;
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
  identity += 1;
  loading = next = null;
  store.fresh.clear(); // another may be asked about other things
  showApprovals({ approvals: [], more: 0, after: null });
  watching.abort();
}

function noted(span) {
  if (since) {
    since.spans.push(span);
    if (since.spans.length > MAX_SPANS) since.spans.shift();
  }
  keep(span);
  later(drawSpans, 100);
}

// Once, although it may be told and asked for.
function keep(span) {
  if (store.spans.some((one) => ["requestId", "attempt", "started", "tool"].every((key) => one[key] === span[key]))) return;
  store.spans.unshift(span);
  store.spans.length = Math.min(store.spans.length, MAX_SPANS);
}

// Asks for the stream again whenever it ends, each time after a longer wait unless it had lasted.
async function watch() {
  let wait = FIRST_WAIT_MS;
  for (;;) {
    const { signal } = watching = new AbortController();
    const began = performance.now();
    try {
      await follow(signal);
      sayLive("not live: asking again");
    } catch (error) {
      // Whatever ended it; if it cannot be had, this says why.
      if (!signal.aborted) await load();
      if (!signal.aborted && error.status && error.status !== 401) warn(error.message); // it says when to come back
      if (!signal.aborted) sayLive(error.status === 401 ? `not live: ${hasToken() ? "the token is not known" : "no token"}` : "not live: asking again");
    }
    if (signal.aborted || performance.now() - began > STEADY_MS) wait = FIRST_WAIT_MS;
    if (signal.aborted) continue;
    await pause(wait * (0.75 + Math.random() / 2), signal); // not all pages at the same moment
    wait = Math.min(wait * 2, LAST_WAIT_MS);
  }
}

// Until the stream ends. One that is silent for too long is taken for dead, though nobody says so.
async function follow(signal) {
  const stream = new AbortController();
  const end = () => stream.abort();
  signal.addEventListener("abort", end);
  let silence = null;
  const heard = () => {
    clearTimeout(silence);
    silence = setTimeout(end, SILENT_MS);
  };
  try {
    heard();
    const response = await fetch("/events", { headers: headers(), signal: stream.signal });
    if (!response.ok) throw await refusalOf(response);
    await load(); // what was missed before there was a stream
    sayLive("live");
    for await (const { event, data } of eventsOf(response, heard)) told(event, data);
  } finally {
    clearTimeout(silence);
    signal.removeEventListener("abort", end);
    end();
  }
}

function told(event, data) {
  if (event === "hello" && data.workers) sayLive(`live, from worker ${data.worker} of ${data.workers}`);
  if (event === "span") noted(data);
  if (event === "tools") changed(data);
  if (event === "approval") decided(data);
  if (event === "resumed") showResumed(data);
}

function sayLive(said) {
  if ($("live").textContent !== said) $("live").textContent = said;
}

// For so long, or until somebody gives another token.
const pause = (wait, signal) => new Promise((done) => {
  const timer = setTimeout(done, wait);
  signal.addEventListener("abort", () => { clearTimeout(timer); done(); }, { once: true });
});

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

const CAN = { call: "list and call tools", approve: "see and answer approvals", admin: "open and close circuits" };

function rightsIn(scopes) {
  const [may, not] = [true, false].map((wanted) => Object.keys(CAN).filter((scope) => scopes[scope] === wanted).map((scope) => CAN[scope]));
  return [may.length ? `may ${may.join(", ")}` : null, not.length ? `may not ${not.join(", ")}` : null].filter(Boolean).join("; ");
}

function drawWho() {
  for (const one of document.querySelectorAll("[data-needs-call]")) one.hidden = !store.may.call;
  $("who").textContent = `You are ${visible(store.name)}: ${rightsIn(store.may)}.`;
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
  if (before !== name) store.made = store.waiting = null;
  if (before !== name) byHand(() => clearDetail(name, "Asking for it…"));
  for (const one of [before, name]) buttonOf(one ?? "")?.setAttribute("aria-current", String(one === name));
  await describe(name, byHand);
  if (store.chosen === name) $("detail").focus();
}

let described = 0; // questions so far: an answer that comes after that to a later one is no use
async function describe(name, draws = (work) => work()) {
  const mine = described += 1, isMeant = () => store.chosen === name && described === mine;
  try {
    const found = await ask(`/tools/${encodeURIComponent(name)}`);
    if (!isMeant()) return;
    const isSame = store.detail && DEFINING.every((key) => JSON.stringify(found[key]) === JSON.stringify(store.detail[key]));
    store.detail = found;
    if (isSame) drawFacts();
    else draws(drawDetail);
  } catch (error) {
    if (!isMeant()) return;
    // A heading must never stand above the form of another tool.
    clearDetail(name, `It cannot be shown: ${error.message}`);
    warn(error.message);
  }
}

// What of a tool is drawn once, with its form; all else of it is drawn with the facts.
const DEFINING = ["name", "title", "description", "inputSchema", "outputSchema", "policy", "example"];

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
  const former = $("try")?.dataset.tool === tool.name ? $("try") : null; // it was defined anew
  const typed = former && typedIn(former), outcome = former && $("outcome");
  const body = [
    el("p", {}, tool.description),
    el("dl", { class: "facts", id: "facts" }),
    el("h3", {}, "Try it"),
    formOf(tool),
    outcome ?? el("div", { id: "outcome", role: "status" }),
    el("details", {}, el("summary", {}, "Schema of the arguments"), el("pre", { tabindex: "0" }, pretty(tool.inputSchema))),
    ...(tool.outputSchema ? [el("details", {}, el("summary", {}, "Schema of the result"), el("pre", { tabindex: "0" }, pretty(tool.outputSchema)))] : []),
    el("details", {}, el("summary", {}, "Policy"), el("pre", { tabindex: "0" }, pretty(tool.policy))),
  ];
  $("detail-title").textContent = visible(tool.title ? `${tool.name}: ${tool.title}` : tool.name);
  $("detail-body").replaceChildren(...body);
  if (typed) typeInto($("try"), typed);
  drawFacts();
}

function drawFacts() {
  const tool = chosenTool();
  if (!tool || !$("facts")) return;
  const hints = Object.entries(tool.annotations).map(([hint, value]) => `${hint}: ${value}`).join(", ");
  const recent = store.spans.filter((span) => span.tool === tool.name).slice(0, 10);
  const facts = [
    ["state", badge(...STATES[tool.state])],
    ["why", tool.quarantined],
    ["risk", tool.riskLevel],
    ["hints", hints || "none given"],
    ["retried", tool.retrySafe ? "yes, if it fails" : "no, a second call may have a second effect"],
    ["circuit", tool.breaker ?? "none"],
    ["rate", tool.rate ? `${tool.rate.limit}${tool.rate.left == null ? "" : `, ${tool.rate.left} left`}` : "no limit"],
    ["recent", recent.length ? recent.map((span) => inWords(span.reason || span.outcome)).join(", ") : "nothing yet"],
  ];
  $("facts").replaceChildren(...facts.filter(([, value]) => value).flatMap(([name, value]) => [el("dt", {}, name), el("dd", { class: name === "recent" && "line" }, value)]));
  const run = $("run");
  if (!run) return;
  run.disabled = running.has(tool.name) || tool.state === "not_released" || tool.state === "blocked";
  const said = runWords(tool);
  if (run.textContent === said) return;
  run.textContent = said;
  run.dataset.settles += "'"; // what it does is another thing now
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
  timeCell(span.started),
  el("td", {}, span.tool, span.attempt > 1 ? ` (attempt ${span.attempt})` : ""),
  el("td", { class: kindOf(span) }, span.reason ? inWords(span.reason) : span.outcome),
  el("td", { class: "number" }, span.durationMs.toFixed(1)));

// ---- the form ------------------------------------------------------------------------------

let forms = 0; // another form of the same tool is another one to run
const running = new Set(); // tools, each of which is run once at a time from here
const runWords = (tool) => (tool.state === "locked" ? "Ask for approval" : "Run");

function formOf(tool) {
  const fields = fieldsOf(tool.inputSchema);
  const form = el("form", { id: "try", "data-tool": tool.name, autocomplete: "off", novalidate: true, onsubmit: (event) => { event.preventDefault(); run(tool, form); } },
    ...fields,
    fields.length ? null : el("p", { class: "quiet" }, "It takes no arguments."),
    el("p", { class: "buttons" },
      el("button", { type: "submit", id: "run", "data-settles": `run ${forms += 1}`, class: "primary", disabled: running.has(tool.name) }, runWords(tool)),
      tool.example ? el("button", { type: "button", onclick: () => fill(form, tool.example.arguments) }, "Fill in the example") : null));
  return form;
}

async function run(tool, form) {
  const requestId = newId();
  const show = (...nodes) => { if (store.made === requestId) $("outcome")?.replaceChildren(...nodes); };
  store.made = requestId;
  store.waiting = null;
  running.add(tool.name);
  drawFacts();
  show(el("p", { class: "quiet" }, `running as ${requestId}…`));
  try {
    const call = `{"tool":${JSON.stringify(tool.name)},"requestId":${JSON.stringify(requestId)},"arguments":${argumentsOf(form)}}`;
    showResult(requestId, await called(call, (data) => show(el("p", { class: "quiet" }, progressWords(data)))));
  } catch (error) {
    show(el("div", { class: "outcome bad" }, error instanceof Gone ? error.message : `This page cannot do that: ${error.message}`));
  }
  running.delete(tool.name);
  drawFacts();
}

function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return `console-${[...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

const progressWords = ({ message, done, total }) => `${message}${done == null ? "" : ` (${done}${total == null ? "" : ` of ${total}`})`}`;

// Of the call that was made last: another may take long, and its result would stand for this one's.
function showResult(requestId, result) {
  if (store.made !== requestId || !$("outcome")) return;
  store.waiting = waitsIn(result) ? requestId : null;
  $("outcome").replaceChildren(outcomeOf(result, { traced: true }));
}

// ---- approvals -----------------------------------------------------------------------------

// A card is made once, as the request was when it was shown, and changes in its own place alone:
// what it says is what its buttons answer. One that is answered keeps its place too, until the list
// is asked for anew.

function cardOf(approval) {
  const { id, calls } = approval, key = `reason-${id}`;
  const tools = [...new Set(calls.map((call) => call.tool))].join(", ");
  const decisions = calls.map(() => el("span", { class: "quiet" }));
  const reason = el("input", { type: "text", id: key, maxlength: 300, autocomplete: "off", "aria-describedby": `${key}-hint` });
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
    el("div", { class: "field" }, el("label", { for: key }, "Reason"), reason,
      el("span", { class: "hint", id: `${key}-hint` }, "If you deny it, the model is told this.")),
    el("p", { class: "buttons" }, approve, button("deny", "Deny")));
  const node = el("li", { "data-request": id, tabindex: "-1" },
    ...calls.flatMap((call, at) => [
      el("p", {}, el("strong", {}, call.tool), " ", badge(`${call.risk} risk`, "warn"), " ", decisions[at]),
      call.server ? el("p", {}, `on ${call.server}`) : null,
      call.reason && call.reason !== `${call.risk} risk` ? el("p", { class: "quiet" }, call.reason) : null,
      bodies[at],
      el("p", { class: "digest" }, `digest ${call.digest}`)]),
    el("p", { class: "quiet", id: `which-${id}` }, `${id} · asked ${clockTime(approval.created)}${who}${until}`),
    controls);
  const card = { approval, node, controls, decisions, approve, bodies, warning, waits: true, busy: false, settled: 0 };
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

// `known`: what was counted as new when the list was asked for. What came since stays counted.
function showApprovals({ approvals, more, after }, known = store.fresh) {
  const cards = approvals.filter((approval) => !store.answered.has(approval.id)).map((approval) => {
    const shown = store.cards.get(approval.id);
    return shown?.waits ? shown : cardOf(approval);
  });
  store.cards = new Map(cards.map((card) => [card.approval.id, card]));
  store.left = { more, after };
  for (const id of new Set(known)) store.fresh.delete(id);
  for (const id of store.cards.keys()) store.fresh.delete(id);
  $("approvals").replaceChildren(...cards.map((card) => card.node));
  drawWaiting();
}

function drawWaiting() {
  const waiting = [...store.cards.values()].filter((card) => card.waits).length, fresh = store.fresh.size;
  const said = !store.may.approve ? (hasToken() && store.name ? `The token of ${visible(store.name)} may not see and answer approvals: give one that may.` : "To see and answer approvals, give a token that may approve.")
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
    const older = page.approvals.filter(({ id }) => !store.cards.has(id) && !store.answered.has(id)).map(cardOf);
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
  if (approval.status !== "pending") answered(approval);
  if (!store.may.approve) return;
  const card = store.cards.get(approval.id);
  if (card) change(card, approval);
  else if (approval.status !== "pending") store.fresh.delete(approval.id);
  else if (store.fresh.size < MAX_FRESH) store.fresh.add(approval.id);
  if (store.fresh.size && !isLookedAt()) later(showNew, 100);
  else later(drawWaiting, 200);
}

function answered({ id, status, calls }) {
  store.answered.add(id);
  if (store.answered.size > MAX_FRESH) store.answered.delete(store.answered.values().next().value);
  if (status !== "withdrawn" && status !== "expired") return; // of the others there is a result
  if (!calls.some((call) => call.requestId === store.waiting)) return;
  store.waiting = null;
  $("outcome")?.replaceChildren(el("div", { class: "outcome bad" }, `${VERDICTS[status]}; nothing was run.`));
}

let lists = 0; // questions so far
async function showNew() {
  const mine = lists += 1, as = identity, known = new Set(store.fresh);
  try {
    const found = await ask(WAITING);
    if (mine === lists && as === identity) showApprovals(found, known);
  } catch (error) {
    warn(error.message);
  }
}

const newestShown = () => Math.max(0, ...[...store.cards.values()].map((card) => card.approval.created));

// What became of the requests while there was no stream.
async function compare(found, known) {
  lists += 1; // a list that was asked for before is older than this one
  if (!store.may.approve || !isLookedAt()) return showApprovals(found, known);
  const as = identity, waiting = new Set(found.approvals.map((approval) => approval.id));
  for (const { id, created } of found.approvals) if (!store.cards.has(id) && !store.answered.has(id) && created >= newestShown()) store.fresh.add(id);
  drawWaiting();
  for (const card of store.cards.values()) {
    const { id } = card.approval;
    if (card.settled === LAST || waiting.has(id)) continue;
    const now = await ask(`/approvals/${encodeURIComponent(id)}`).catch(() => null);
    if (as !== identity) return;
    if (now) decidedNow(now);
  }
}

// As it was asked for by itself: with its results, if there are any.
function decidedNow(approval) {
  decided(approval);
  if (approval.results) showResumed({ id: approval.id, results: approval.results });
}

const VERDICTS = {
  approved: "Approved", taken: "Approved; it runs", done: "Approved, and run", denied: "Denied", expired: "Expired",
  withdrawn: "Taken back by who asked", unknown: "Approved; whether it took effect is not known",
};

// How far a request is. What is told of it by an answer that was slow never takes it back.
const STEPS = { pending: 0, approved: 1, taken: 2 };
const LAST = 3;

function change(card, approval) {
  const step = STEPS[approval.status] ?? LAST;
  if (step < card.settled || card.settled === LAST) return;
  card.settled = step;
  if (step === 0) {
    approval.calls.forEach((call, at) => { card.decisions[at].textContent = call.decision ? "approved already" : ""; });
    return;
  }
  const by = [...new Set(approval.calls.map((call) => call.decidedBy).filter(Boolean))].join(", ");
  verdict(card, `${VERDICTS[approval.status] ?? approval.status}${by ? `, by ${by}` : ""}.`);
}

// What came of it: in the request's own place, and at the form if it was asked for there.
function showResumed({ id, results }) {
  const card = store.cards.get(id), mine = results.find((result) => result.requestId === store.waiting);
  if (mine) showResult(mine.requestId, mine);
  if (!card) return;
  const failed = results.find((result) => result.isError)?.failure;
  if (!results.some(isDenied)) {
    // What was refused before it ran stays approved, and may yet run.
    card.settled = failed ? Math.max(card.settled, STEPS.taken) : LAST;
    verdict(card, failed ? `Approved; ${inWords(failed.reason)}.` : `${VERDICTS.done}.`);
  }
  showResults(card, results);
}

// Nothing that can be pressed is moved by it: above a request that waits it is scrolled in its place.
function showResults(card, results) {
  const traced = Boolean(store.may.call), named = results.length > 1;
  const place = el("div", { class: "came", tabindex: "0", role: "group", "aria-label": `what came of ${card.approval.id}` }, ...results.map((result) => outcomeOf(result, { named, traced })));
  const below = [...store.cards.values()].some((other) => other.waits && card.node.compareDocumentPosition(other.node) & Node.DOCUMENT_POSITION_FOLLOWING);
  const { bottom } = card.node.getBoundingClientRect();
  card.controls.querySelector(".came")?.remove();
  card.controls.append(place);
  if (below) place.style.maxHeight = `${Math.max(bottom - place.getBoundingClientRect().top - 9, 0)}px`; // its padding and line
}

function verdict(card, text) {
  card.waits = false;
  card.node.style.minHeight = `${card.node.getBoundingClientRect().height}px`; // what is below it stays where it is
  const had = card.controls.contains(document.activeElement);
  const said = el("p", { class: "verdict", tabindex: "-1" }, text.length > 160 ? `${text.slice(0, 160)}…` : text);
  card.controls.replaceChildren(said);
  if (had) said.focus({ preventScroll: true });
}

async function answer(card, decision, reason) {
  if (card.busy) return;
  card.busy = true;
  const { id, calls } = card.approval, as = identity;
  try {
    const now = await send(`/approvals/${encodeURIComponent(id)}`, { decision, reason, digests: calls.map((call) => call.digest) });
    if (as === identity) decided(now);
    warn("");
  } catch (error) {
    warn(error.message);
    const now = await ask(`/approvals/${encodeURIComponent(id)}`).catch(() => null);
    if (now && as === identity) decidedNow(now);
  }
  card.busy = false;
}

// ---- the token -----------------------------------------------------------------------------

// Another is taken only once the gateway knows it; what is wrong with it is said where it was typed.
let tried = 0;
async function tryToken() {
  const given = $("token").value.trim(), mine = tried += 1;
  if (!given) return refuseToken("Type or paste a token first.");
  if (!/^[\x21-\x7e]+$/.test(given)) return refuseToken("This is no token: one has no blanks, and no letters beyond ASCII.");
  sayToken("Asking the gateway…");
  try {
    const { name, may } = await ask("/client", { token: given });
    if (mine !== tried || !$("token-dialog").open) return;
    const serves = may.approve || (may.call && !store.may.call);
    useToken(given);
    $("token").value = "";
    watchAnew();
    if (serves) $("token-dialog").close();
    else refuseToken(`This token lacks the right. It is in use, and is that of ${name}, which ${rightsIn(may)}.`);
  } catch (error) {
    if (mine !== tried || !$("token-dialog").open) return;
    refuseToken(error.status === 401 ? "The gateway does not know this token. It may be mistyped, or of an earlier start: the file has the one of this start." : error.message);
  }
}

function refuseToken(words) {
  sayToken(words, true);
  $("token").focus();
  $("token").select();
}

function sayToken(words, isWrong = false) {
  $("token-said").textContent = visible(words);
  $("token-said").className = isWrong ? "bad" : "quiet";
  if (isWrong) $("token").setAttribute("aria-invalid", "true");
  else $("token").removeAttribute("aria-invalid");
}

function openToken() {
  sayToken("");
  $("token-dialog").showModal();
  $("token").focus();
}

function forgetToken() {
  $("token-dialog").close();
  if (!hasToken()) return;
  useToken(null);
  watchAnew();
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
$("open-token").addEventListener("click", openToken);
$("forget-token").addEventListener("click", forgetToken);
for (const dialog of document.querySelectorAll("dialog")) {
  for (const button of dialog.querySelectorAll("[data-closes]")) button.addEventListener("click", () => dialog.close());
}
$("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  tryToken();
});
$("token-dialog").addEventListener("close", () => {
  tried += 1; // what is still asked is not wanted any more
  $("token").value = "";
});

const MOVED = "The page has just moved: look again, then press.";
begin((held) => {
  if (held) warn(MOVED);
  else if ($("banner").textContent === MOVED) warn("");
});
watch();
