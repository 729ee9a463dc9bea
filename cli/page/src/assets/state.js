// The server's state, piece by piece, and the requests to the server.

/** @typedef {{reset: boolean, set: Record<string, any>, gone: string[]}} Update */

/** All pieces, by name: "team/x", "task/x/3", "agent/x/a1", … */
export const pieces = new Map();

/** @type {((changed: Set<string>, reset: boolean) => void)[]} */
const listeners = [];
/** @type {((connected: boolean) => void)[]} */
const lines = [];

/** @param {(changed: Set<string>, reset: boolean) => void} listener */
export function onChange(listener) {
  listeners.push(listener);
}

/** @param {(connected: boolean) => void} listener */
export function onLine(listener) {
  lines.push(listener);
}

/** @param {Update} update */
function take(update) {
  const changed = new Set(Object.keys(update.set));
  if (update.reset) {
    for (const name of pieces.keys()) if (!(name in update.set)) changed.add(name);
    pieces.clear();
  }
  for (const name of update.gone) {
    pieces.delete(name);
    changed.add(name);
  }
  for (const [name, value] of Object.entries(update.set)) pieces.set(name, value);
  // Several updates before the next frame are drawn once.
  for (const name of changed) waiting.add(name);
  waitingReset ||= update.reset;
  if (!scheduled) {
    scheduled = true;
    schedule(() => {
      scheduled = false;
      const all = new Set(waiting);
      const reset = waitingReset;
      waiting.clear();
      waitingReset = false;
      for (const listener of listeners) listener(all, reset);
    });
  }
}

/** @type {Set<string>} */
const waiting = new Set();
let waitingReset = false;
let scheduled = false;

/** A hidden page draws nothing, but must not forget. @param {() => void} draw */
function schedule(draw) {
  if (document.hidden) setTimeout(draw, 1000);
  else requestAnimationFrame(draw);
}

/** The browser reconnects by itself, and reports the last event it saw. */
export function connect() {
  const source = new EventSource("/events");
  source.onopen = () => lines.forEach((tell) => tell(true));
  source.onmessage = (event) => take(JSON.parse(event.data));
  source.onerror = () => {
    lines.forEach((tell) => tell(false));
    // A stream that gave up for good is opened again; the server then sends everything.
    if (source.readyState === EventSource.CLOSED) {
      source.close();
      setTimeout(connect, 3000);
    }
  };
}

/** All pieces below a name. @param {string} prefix @returns {any[]} */
export function below(prefix) {
  const found = [];
  for (const [name, value] of pieces) if (name.startsWith(prefix)) found.push(value);
  return found;
}

/** @param {string} path @param {Record<string, string>} [query] */
export async function get(path, query = {}) {
  const answer = await fetch(`${path}?${new URLSearchParams(query)}`);
  return read(answer);
}

/** @param {string} team @param {any} act @returns {Promise<string>} */
export async function act(team, act) {
  const answer = await fetch("/api/act", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ team, act }),
  });
  return (await read(answer)).said;
}

/** @param {Response} answer */
async function read(answer) {
  const text = await answer.text();
  let json;
  try {
    json = JSON.parse(text);
  } catch {
    throw new Error(text || `the server answered ${answer.status}`);
  }
  if (!answer.ok) {
    const { message, hint } = json.error ?? {};
    throw new Error(hint ? `${message}. ${hint}` : (message ?? text));
  }
  return json;
}
