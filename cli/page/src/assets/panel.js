// Details of one task or agent, beside the view.
import { below, get, pieces } from "./state.js";
import { byId, clock, h, keyed, money, tokens } from "./dom.js";
import { button } from "./attention.js";
import { about, mark } from "./board.js";
import { diff } from "./diff.js";

/** Maximum entries of a transcript drawn. */
const SHOWN = 400;

/** @type {EventSource | null} */
let source = null;
/** The shown thing: "task/team/3" or "agent/team/id". @type {string | null} */
let shown = null;
/** @type {(() => void) | null} */
let refresh = null;
/** @type {Element | null} */
let from = null;

/** @param {() => void} closed */
function frame(closed) {
  const panel = byId("panel");
  if (panel.hidden) from = document.activeElement;
  panel.hidden = false;
  const close = h("button", { click: () => closed(), "aria-label": "Close details" }, "Close");
  return { panel, close };
}

export function closePanel() {
  stop();
  byId("panel").hidden = true;
  byId("panel").replaceChildren();
  if (from instanceof HTMLElement && from.isConnected) from.focus();
}

function stop() {
  source?.close();
  [source, shown, refresh] = [null, null, null];
}

/** @param {Set<string>} changed */
export function updatePanel(changed) {
  if (shown && changed.has(shown)) refresh?.();
}

/** @param {string} team @param {string} what */
function changes(team, what) {
  const place = h("div", {});
  const load = async () => {
    place.replaceChildren(h("p", { class: "dim" }, "Reading the diff …"));
    try {
      place.replaceChildren(diff(await get("/api/changes", { team, what })));
    } catch (error) {
      place.replaceChildren(h("p", { class: "dim" }, String(error instanceof Error ? error.message : error)));
    }
  };
  return { place, load };
}

/** The actions for a task. @param {any} task */
function answers(task) {
  const all = [];
  const id = task.id;
  if (task.landing === "waiting" || task.landing === "undone") {
    all.push({ act: { do: "land", tasks: [id] }, word: task.unchecked ? "land unchecked" : "land" });
    all.push({ act: { do: "reject", task: id, feedback: "" }, word: "reject", asksFor: "what should the next attempt do differently" });
  }
  if (task.landing === "landed") all.push({ act: { do: "undo", task: id }, word: "undo" });
  if (task.state === "parked") all.push({ act: { do: "retry", task: id }, word: "retry" });
  return all;
}

/** @param {string} team @param {string} id @param {() => void} closed @param {(agent: string) => void} openAgent */
export function showTask(team, id, closed, openAgent) {
  stop();
  shown = `task/${team}/${id}`;
  const { panel, close } = frame(closed);
  const head = h("h2", { tabindex: -1 });
  const words = h("p", {});
  const buttons = h("div", { class: "buttons" });
  const facts = h("div", {});
  const agents = h("div", { class: "buttons" });
  const changed = changes(team, id);
  panel.replaceChildren(h("div", { class: "bar" }, close), head, words, buttons, facts, agents, h("h3", {}, "Changes"), changed.place);
  let last = "";
  refresh = async () => {
    const name = `task/${team}/${id}`;
    const line = pieces.get(name);
    if (!line) {
      words.textContent = "This task is gone.";
      return;
    }
    const [style, text] = about(line);
    head.textContent = `${mark(line.state, line.unchecked)} #${line.id} ${line.subject}`;
    words.className = style;
    words.textContent = text || line.state;
    const state = `${line.state} ${line.landing} ${line.attempts} ${line.unchecked}`;
    if (state === last) return;
    last = state;
    buttons.replaceChildren(...answers(line).map((answer) => button(team, answer)));
    const own = below(`agent/${team}/`).filter((agent) => String(agent.task) === id);
    own.sort((a, b) => a.sinceMs - b.sinceMs);
    agents.replaceChildren(
      ...own.map((agent) => h("button", { click: () => openAgent(agent.id), "data-of": agent.id }, `Transcript of ${agent.name} (${agent.state})`)),
    );
    changed.load();
    try {
      const task = await get("/api/task", { team, id });
      if (shown !== name) return;
      const description = task.description.trim();
      facts.replaceChildren(
        description && description !== task.subject ? h("pre", { tabindex: 0 }, description) : "",
        task.check ? h("p", {}, "Check: ", h("code", {}, task.check), ` (${task.checkState})`) : "",
        task.command ? h("p", {}, "Runs: ", h("code", {}, task.command)) : "",
        ...task.attemptList.map((/** @type {any} */ one) =>
          h("div", { class: "entry" }, h("time", {}, clock(one.at)), h("b", { class: "bad" }, one.status), ` ${one.why}`, one.printed ? h("pre", { tabindex: 0 }, one.printed) : null),
        ),
      );
    } catch {
      // It was removed while it was shown; the next update says so.
    }
  };
  refresh();
  head.focus();
}

/** @param {any} entry */
function line(entry) {
  const time = h("time", {}, clock(entry.at));
  /** @param {string} text */
  const block = (text) => (text.includes("\n") || text.length > 300 ? h("pre", {}, text) : h("span", {}, text));
  const text = entry.text ?? "";
  switch (entry.what) {
    case "tool": {
      const result = entry.result
        ? h("small", { class: entry.result.ok ? "dim" : "bad" }, ` ${entry.result.ok ? "✔" : "✘"} ${entry.result.first} (${entry.result.lines} lines)`)
        : h("small", { class: "run" }, " running");
      return h("div", { class: "entry tool" }, time, h("b", {}, entry.name), " ", h("code", {}, text), result);
    }
    case "said":
      return h("div", { class: "entry" }, time, block(text));
    case "printed":
      return h("div", { class: "entry" }, time, h("pre", { class: entry.error ? "bad" : "" }, text));
    case "told":
      return h("div", { class: "entry" }, time, h("details", {}, h("summary", {}, entry.fork ? "Its order" : "Its prompt"), h("pre", {}, text)));
    case "received":
      return h("div", { class: "entry" }, time, h("b", {}, "Message: "), block(text));
    case "asked":
      return h("div", { class: "entry" }, time, h("b", { class: "warn" }, `Asks for ${entry.name} `), h("code", {}, text));
    case "answered":
      return h("div", { class: "entry" }, time, h("b", { class: entry.ok ? "ok" : "bad" }, entry.ok ? "Allowed" : "Denied"), ` ${text}`);
    case "turn":
      return h("div", { class: "entry dim" }, time, `Turn ${entry.name}`, text ? h("span", { class: "bad" }, ` ${text}`) : null);
    default:
      return h("div", { class: "entry dim" }, time, block(text));
  }
}

/** @param {string} team @param {string} id @param {() => void} closed */
export function showAgent(team, id, closed) {
  stop();
  shown = `agent/${team}/${id}`;
  const { panel, close } = frame(closed);
  const head = h("h2", { tabindex: -1 });
  const words = h("p", { class: "dim" });
  const buttons = h("div", { class: "buttons" });
  const note = h("p", { class: "dim" });
  const list = h("div", { class: "transcript" });
  const changed = changes(team, id);
  const fold = /** @type {HTMLDetailsElement} */ (h("details", {}, h("summary", {}, "Changes so far"), changed.place));
  fold.addEventListener("toggle", () => {
    if (fold.open) changed.load();
  });
  panel.replaceChildren(h("div", { class: "bar" }, close), head, words, buttons, fold, h("h3", {}, "Transcript, the latest first"), note, list);
  let last = "";
  refresh = () => {
    const agent = pieces.get(`agent/${team}/${id}`);
    if (!agent) return;
    head.textContent = `${agent.name}${agent.task ? ` on #${agent.task}` : ""}`;
    const facts = [agent.state, agent.runtime, agent.model, `${tokens(agent.tokens)} tokens`, money(agent.cost), agent.worktree];
    words.textContent = facts.filter(Boolean).join(" · ");
    const state = `${agent.alive} ${agent.readsMail}`;
    if (state === last) return;
    last = state;
    const all = [];
    if (agent.readsMail) all.push({ act: { do: "message", to: agent.name, text: "" }, word: "message", asksFor: "what should it know" });
    if (agent.alive) all.push({ act: { do: "stop", agent: agent.id, why: null }, word: "stop" });
    else all.push({ act: { do: "resume", agent: agent.id, text: null }, word: "resume" });
    buttons.replaceChildren(...all.map((answer) => button(team, answer)));
  };
  refresh();
  follow(team, id, list, note);
  head.focus();
}

/** @param {string} team @param {string} id @param {HTMLElement} list @param {HTMLElement} note */
function follow(team, id, list, note) {
  /** @type {Map<number, any>} */
  const entries = new Map();
  const stream = new EventSource(`/api/transcript?${new URLSearchParams({ team, agent: id })}`);
  source = stream;
  stream.onmessage = (event) => {
    const update = JSON.parse(event.data);
    if (update.reset) entries.clear();
    for (const entry of update.entries) entries.set(entry.n, entry);
    for (const n of entries.keys()) if (n < update.oldest) entries.delete(n);
    const latest = [...entries.values()].sort((a, b) => b.n - a.n).slice(0, SHOWN);
    const more = update.earlier || entries.size > SHOWN;
    note.textContent = update.trouble ?? (more ? "Only the latest entries are shown; ccb agent logs shows all of them." : entries.size ? "" : "Nothing yet.");
    keyed(list, latest, (entry) => String(entry.n), line);
  };
}
