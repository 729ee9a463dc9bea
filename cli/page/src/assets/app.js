// The page: the team, the view and the open panel. All of it is in the address, so that the back button works.
import { connect, onChange, onLine, pieces } from "./state.js";
import { byId, duration, h, money } from "./dom.js";
import { agents } from "./agents.js";
import { attention } from "./attention.js";
import { board } from "./board.js";
import { graph } from "./graph.js";
import { closePanel, showAgent, showTask, updatePanel } from "./panel.js";
import { runs, timeline } from "./timeline.js";

/** @typedef {{update: (changed: Set<string>) => void, select: () => void, stop?: () => void}} View */

const VIEWS = [
  ["board", "Board"],
  ["graph", "Graph"],
  ["agents", "Agents"],
  ["attention", "Needs you"],
  ["timeline", "Timeline and cost"],
  ["runs", "Runs"],
];

/** The parts of the address: #team/view/task/3 or #team/view/agent/id. */
function here() {
  const [team, view, kind, id] = location.hash.slice(1).split("/").map(decodeURIComponent);
  return { team: team || "", view: view || "board", kind: kind || "", id: id || "" };
}

/** @param {Partial<ReturnType<typeof here>>} to */
function go(to) {
  const at = { ...here(), ...to };
  const parts = [at.team, at.view, ...(at.kind ? [at.kind, at.id] : [])];
  location.hash = parts.map(encodeURIComponent).join("/");
}

/** @type {View | null} */
let view = null;
let drawn = "";
let opened = "";

function team() {
  const { team } = here();
  const names = /** @type {string[]} */ (pieces.get("teams") ?? []);
  return names.includes(team) || !names.length ? team : (names[0] ?? "");
}

const close = () => go({ kind: "", id: "" });

function draw() {
  const at = here();
  const name = team();
  const key = `${name}/${at.view}`;
  if (key !== drawn) {
    view?.stop?.();
    drawn = key;
    const main = byId("main");
    const selected = () => here().id || null;
    if (!name && at.view !== "runs" && at.view !== "attention") {
      main.replaceChildren(h("p", { class: "dim" }, "Nothing runs here. Start a session: ccb \"make the tests pass\"."));
      view = null;
    } else if (at.view === "graph") view = graph(main, name, { open: (id) => go({ kind: "task", id }) });
    else if (at.view === "agents") view = agents(main, name, { selected, open: (id) => go({ kind: "agent", id }) });
    else if (at.view === "attention") view = attention(main, { openTask: (team, id) => go({ team, kind: "task", id }) });
    else if (at.view === "timeline") view = timeline(main, name);
    else if (at.view === "runs") view = runs(main);
    else view = board(main, name, { selected, open: (id) => go({ kind: "task", id }) });
  }
  const open = at.kind ? `${name}/${at.kind}/${at.id}` : "";
  if (open !== opened) {
    opened = open;
    if (at.kind === "task") showTask(name, at.id, close, (id) => go({ view: "agents", kind: "agent", id }));
    else if (at.kind === "agent") showAgent(name, at.id, close);
    else closePanel();
    view?.select();
  }
  tabs();
  headline();
}

function tabs() {
  const at = here();
  const needs = (pieces.get("attention") ?? []).length;
  const key = `${at.view} ${needs}`;
  const nav = byId("tabs");
  document.title = needs ? `(${needs}) ccb` : "ccb";
  if (nav.dataset.key === key) return;
  const inside = nav.contains(document.activeElement);
  nav.dataset.key = key;
  nav.replaceChildren(
    ...VIEWS.map(([name, words], n) =>
      h("button", { "aria-current": at.view === name ? "page" : null, title: `Press ${n + 1}`, "data-view": name, click: () => go({ view: name, kind: "", id: "" }) },
        words,
        name === "attention" && needs ? h("span", { class: "n" }, needs) : null),
    ),
  );
  if (inside) /** @type {HTMLElement | null} */ (nav.querySelector("[aria-current]"))?.focus();
}

function teams() {
  const select = /** @type {HTMLSelectElement} */ (byId("team"));
  const names = /** @type {string[]} */ (pieces.get("teams") ?? []);
  const key = names.join(" ");
  if (select.dataset.key !== key) {
    select.dataset.key = key;
    select.replaceChildren(...names.map((name) => h("option", { value: name }, name)));
  }
  select.value = team();
}

function headline() {
  const head = pieces.get(`team/${team()}`);
  const line = byId("headline");
  if (!head) return line.replaceChildren();
  const counts = head.counts;
  const total = counts.pending + counts.inProgress + counts.completed + counts.unreadable;
  const parts = [
    head.life === "vanished" ? "this team is gone; what is shown is how it was last" : head.life,
    `${counts.completed} of ${total} tasks done`,
    head.leftMs ? `about ${duration(head.leftMs)} left` : null,
    head.cost ? money(head.cost) : null,
    head.spent ? `limit used up: ${head.spent}` : null,
    head.paused ? `paused: ${head.paused}` : null,
    head.director?.newer ? "a newer ccb directs it; some things may not be shown" : null,
    ...head.troubles,
    ...(pieces.get("troubles") ?? []),
  ];
  const text = parts.filter(Boolean).join(" · ");
  const prompt = head.prompt ? ` · ${head.prompt.split("\n")[0]}` : "";
  if (line.textContent !== text + prompt) line.replaceChildren(h("b", {}, text), prompt);
}

onChange((changed, reset) => {
  if (changed.has("teams")) teams();
  if (reset && !drawn) draw();
  else {
    if (`${team()}/${here().view}` !== drawn) draw();
    else view?.update(changed);
    updatePanel(changed);
    tabs();
    headline();
  }
});

onLine((now) => {
  const line = byId("line");
  line.className = now ? "" : "off";
  line.textContent = now ? "live" : "disconnected; is ccb web still running?";
});

byId("team").addEventListener("change", (event) => {
  const select = /** @type {HTMLSelectElement} */ (event.target);
  go({ team: select.value, kind: "", id: "" });
});
addEventListener("hashchange", () => {
  if (pieces.size) {
    teams();
    draw();
  }
});
addEventListener("keydown", (event) => {
  const typing = event.target instanceof HTMLElement && event.target.closest("input, textarea, select, dialog");
  if (event.key === "Escape" && !typing && here().kind) return close();
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  const found = VIEWS[Number(event.key) - 1];
  if (found) go({ view: found[0], kind: "", id: "" });
  else if (event.key === "/") {
    const filter = document.getElementById("filter");
    if (filter) {
      event.preventDefault();
      filter.focus();
    }
  }
});
connect();
