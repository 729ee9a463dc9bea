// The dependencies of tasks, drawn in levels.
import { below, pieces } from "./state.js";
import { h, s } from "./dom.js";
import { mark } from "./board.js";

const WIDE = 190;
const HIGH = 44;
/** Maximum number of tasks drawn. */
const MOST = 400;

/**
 * The level of each task: one more than the highest it waits for.
 * @param {number[]} ids @param {[number, number][]} edges
 */
function levels(ids, edges) {
  const before = new Map(ids.map((id) => [id, /** @type {number[]} */ ([])]));
  for (const [a, b] of edges) if (before.has(a)) before.get(b)?.push(a);
  /** @type {Map<number, number>} */
  const level = new Map();
  // The number of tasks limits the rounds, in case tasks wait for each other.
  for (let round = 0, moved = true; moved && round <= ids.length; round++) {
    moved = false;
    for (const id of ids) {
      let at = 0;
      for (const on of before.get(id) ?? []) at = Math.max(at, (level.get(on) ?? 0) + 1);
      at = Math.min(at, ids.length);
      if (level.get(id) !== at) {
        level.set(id, at);
        moved = true;
      }
    }
    if (round > 200) break;
  }
  return level;
}

/**
 * @param {HTMLElement} main
 * @param {string} team
 * @param {{open: (id: string) => void}} page
 */
export function graph(main, team, page) {
  const box = h("div", { class: "graph", tabindex: 0, role: "region", "aria-label": "Dependencies" });
  const note = h("p", { class: "dim" });
  main.replaceChildren(note, box);
  let drawn = "";

  function update() {
    const links = pieces.get(`graph/${team}`);
    /** @type {[number, number][]} */
    const edges = (links?.edges ?? []).map((/** @type {any[]} */ edge) => [Number(edge[0]), Number(edge[1])]);
    const linked = new Set(edges.flat());
    const all = below(`task/${team}/`).map((task) => ({ ...task, id: Number(task.id) }));
    let tasks = all.filter((task) => linked.has(task.id));
    tasks.sort((a, b) => a.id - b.id);
    const open = tasks.filter((task) => task.state !== "done");
    if (tasks.length > MOST) tasks = open.slice(0, MOST);
    const left = all.length - tasks.length;
    note.textContent = edges.length === 0
      ? "No task waits for another."
      : `Each task is to the right of what it waits for. ${left ? `${left === 1 ? "1 task" : `${left} tasks`} without dependencies, or done, ${left === 1 ? "is" : "are"} not drawn. ` : ""}The critical path has a thick border.`;
    const now = JSON.stringify([edges, links?.criticalPath, tasks.map((task) => [task.id, task.state, task.subject])]);
    if (now === drawn) return;
    drawn = now;
    const level = levels(tasks.map((task) => task.id), edges);
    /** @type {Map<number, number>} */
    const filled = new Map();
    /** @type {Map<number, [number, number]>} */
    const places = new Map();
    for (const task of tasks) {
      const column = level.get(task.id) ?? 0;
      const row = filled.get(column) ?? 0;
      filled.set(column, row + 1);
      places.set(task.id, [column * (WIDE + 60) + 8, row * (HIGH + 14) + 8]);
    }
    const critical = new Set((links?.criticalPath ?? []).map(Number));
    const width = Math.max(1, ...[...filled.keys()].map((column) => column + 1)) * (WIDE + 60);
    const height = Math.max(1, ...filled.values()) * (HIGH + 14) + 16;
    const lines = edges.flatMap(([a, b]) => {
      const from = places.get(a);
      const to = places.get(b);
      if (!from || !to) return [];
      const [x1, y1, x2, y2] = [from[0] + WIDE, from[1] + HIGH / 2, to[0], to[1] + HIGH / 2];
      return [s("path", { d: `M${x1} ${y1}C${x1 + 30} ${y1} ${x2 - 30} ${y2} ${x2} ${y2}` })];
    });
    const nodes = tasks.map((task) => {
      const [x, y] = places.get(task.id) ?? [0, 0];
      const open = (/** @type {Event} */ event) => {
        event.preventDefault();
        page.open(String(task.id));
      };
      return s(
        "a",
        { href: "#", class: critical.has(task.id) ? "critical" : "", click: open, "aria-label": `#${task.id} ${task.subject}, ${task.state}` },
        s("rect", { x, y, width: WIDE, height: HIGH, rx: 6 }),
        // A nested drawing is cut off at its edge, however long the words are.
        s(
          "svg",
          { x: x + 8, y, width: WIDE - 16, height: HIGH },
          s("text", { y: 18 }, `#${task.id} ${task.subject.slice(0, 60)}`),
          s("text", { y: 35, class: "state" }, `${mark(task.state, task.unchecked)} ${task.unchecked ? "unchecked" : task.state}${task.landing ? `, ${task.landing}` : ""}`),
        ),
      );
    });
    box.replaceChildren(s("svg", { width, height, viewBox: `0 0 ${width} ${height}` }, ...lines, ...nodes));
  }

  update();
  return {
    update: (/** @type {Set<string>} */ changed) => {
      for (const name of changed) if (name === `graph/${team}` || name.startsWith(`task/${team}/`)) return update();
    },
    select: () => {},
  };
}
