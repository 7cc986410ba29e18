// What is asked of the gateway, with the token of this tab, and what it tells by itself.

const TOKEN = "seawall-token";
const ANSWER_MS = 30_000; // after which a question counts as not answered

let token = kept();

// A browser may be told to keep nothing for a page: then the token lasts as long as the page does.
function kept() {
  try {
    return sessionStorage.getItem(TOKEN);
  } catch {
    return null;
  }
}

export const hasToken = () => token !== null;

export function useToken(given) {
  token = given;
  try {
    if (given === null) sessionStorage.removeItem(TOKEN);
    else sessionStorage.setItem(TOKEN, given);
  } catch {
    // It is this page's alone then.
  }
}

export const headers = (more = {}, one = token) => (one ? { ...more, Authorization: `Bearer ${one}` } : more);

export async function ask(path, { token: one = token, ...options } = {}) {
  const failed = (otherwise) => (error) => { throw new Error(error.name === "TimeoutError" ? "The gateway does not answer." : otherwise); };
  const response = await fetch(path, { signal: AbortSignal.timeout(ANSWER_MS), ...options, headers: headers(options.headers, one) })
    .catch(failed("The gateway cannot be reached."));
  if (!response.ok) throw await refusalOf(response);
  return response.json().catch(failed(`What came from ${path} is no answer of a gateway.`));
}

export const send = (path, data) =>
  ask(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(data) });

export async function refusalOf(response) {
  const { failure } = await response.json().catch(() => ({}));
  const said = failure ? `${failure.message}. ${failure.guidance}` : `The gateway answered with status ${response.status}.`;
  return Object.assign(new Error(said.trim()), { status: response.status });
}

// Said of what was sent: whether it came, nobody here knows. A fault of the page is none of this.
export class Gone extends Error {
  constructor() {
    super("The gateway went away before it answered. Whether the call ran is not known: see the latest attempts.");
  }
}

// `heard` is told whenever anything has come, a sign of life too.
export async function* eventsOf(response, heard = () => {}) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = "";
  for (;;) {
    const { value, done } = await reader.read().catch(() => { throw new Gone(); });
    if (done) return;
    heard();
    let from = Math.max(buffer.length - 1, 0); // what is there has no end of an event, but may have half of one
    buffer += value;
    let end;
    while ((end = buffer.indexOf("\n\n", from)) >= 0) {
      const event = eventOf(buffer.slice(0, end));
      buffer = buffer.slice(end + 2);
      from = 0;
      if (event) yield event;
    }
  }
}

function eventOf(text) {
  const found = Object.fromEntries(text.split("\n").filter((line) => !line.startsWith(":")).map((line) => {
    const colon = line.indexOf(": ");
    return [line.slice(0, colon), line.slice(colon + 2)];
  }));
  return found.event ? { event: found.event, data: JSON.parse(found.data ?? "null") } : null;
}

// `call` is JSON already. Gives the result, whatever it says.
export async function called(call, progress) {
  const response = await fetch("/console/call", {
    method: "POST",
    headers: headers({ "Content-Type": "application/json", Accept: "text/event-stream" }),
    body: call,
  }).catch(() => { throw new Gone(); });
  if (!response.headers.get("content-type")?.startsWith("text/event-stream")) return response.json().catch(() => { throw new Gone(); });
  for await (const { event, data } of eventsOf(response)) {
    if (event === "result") return data;
    if (event === "progress") progress(data);
  }
  throw new Gone();
}
