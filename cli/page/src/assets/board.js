// The board: tasks in columns.
import { below } from "./state.js";
import { h, keyed } from "./dom.js";

/** The columns, and the tasks that belong to them. @type {[string, (task: any) => boolean][]} */
const COLUMNS = [
  ["Needs a person", (task) => task.state === "parked" || task.state === "unreadable"],
  ["Blocked", (task) => task.state === "blocked" || task.state === "assigned"],
  ["Ready", (task) => task.state === "ready"],
  ["In progress", (task) => task.state === "running" || task.state === "reported"],
  ["Done, not landed", (task) => task.state === "done" && (task.landing === "waiting" || task.landing === "undone")],
  ["Done", (task) => task.state === "done"],
];
/** Maximum cards of a column drawn at first. */
const SHOWN = 100;

const MARKS = {
  running: "◐", done: "✔", parked: "‖", unreadable: "✘", ready: "○", blocked: "○", assigned: "○", reported: "◐",
};

/** @param {string} state @param {string | null} [unchecked] why no check proves it */
export function mark(state, unchecked) {
  if (unchecked) return "⚠";
  return MARKS[/** @type {keyof typeof MARKS} */ (state)] ?? "○";
}

/** The landing of its work. @param {any} task @returns {[string, string]} */
function landing(task) {
  if (task.landing === "undone") return ["warn", "landed, and undone"];
  if (task.landing === "waiting") return ["warn", "done, not landed"];
  if (task.landing === "landed") return ["ok", "landed"];
  return ["", ""];
}

/** The line about a task below its subject. @param {any} task @returns {[string, string]} */
export function about(task) {
  if (task.state === "parked") return ["bad", task.why ?? "parked"];
  if (task.state === "unreadable") return ["bad", "its file cannot be read"];
  if (task.stuck) return ["warn", `the same failure ${task.stuck} times`];
  const [style, words] = landing(task);
  if (task.unchecked) return ["warn", `⚠ unchecked: ${task.unchecked}${words ? `; ${words}` : ""}`];
  if (words) return [style, words];
  if (task.state === "running") return ["run", task.owner ? `${task.owner} works on it` : "in progress"];
  if (task.state === "blocked") return ["", `waits for ${task.blockedBy.map((/** @type {number} */ id) => `#${id}`).join(", ")}`];
  if (task.attempts) return ["warn", `${task.attempts} failed attempt${task.attempts === 1 ? "" : "s"}`];
  return ["", task.owner ?? ""];
}

/**
 * @param {any} task
 * @param {string | null} selected
 * @param {(id: string) => void} open
 */
function card(task, selected, open) {
  const id = String(task.id);
  const [style, words] = about(task);
  const button = h(
    "button",
    { class: "card", "data-task": id, "aria-pressed": String(selected === id), click: () => open(id) },
    `${mark(task.state, task.unchecked)} `,
    h("b", {}, `#${id}`),
    ` ${task.subject}`,
    words ? h("small", { class: style }, words) : null,
  );
  return h("li", {}, button);
}

/**
 * @param {HTMLElement} main
 * @param {string} team
 * @param {{selected: () => string | null, open: (id: string) => void}} page
 */
export function board(main, team, page) {
  const filter = /** @type {HTMLInputElement} */ (
    h("input", { type: "search", id: "filter", placeholder: "Filter tasks (press /)", "aria-label": "Filter tasks" })
  );
  /** @type {Map<string, number>} */
  const limits = new Map();
  const columns = COLUMNS.map(([name, belongs]) => {
    const count = h("span", {});
    const list = h("ul", { class: "cards" });
    const more = h("button", { hidden: true }, "Show more");
    more.addEventListener("click", () => {
      limits.set(name, (limits.get(name) ?? SHOWN) + 500);
      update();
    });
    const element = h("section", { class: "column", "aria-label": name }, h("h2", {}, name, count), list, more);
    return { name, belongs, count, list, more, element };
  });
  const empty = h("p", { class: "dim" });
  main.replaceChildren(
    h("div", { class: "bar" }, filter),
    empty,
    h("div", { class: "columns", tabindex: 0, role: "region", "aria-label": "Tasks by state" }, ...columns.map((column) => column.element)),
  );
  /** The last column of each task, to show that it moved. @type {Map<string, string>} */
  let places = new Map();

  function update() {
    const words = filter.value.toLowerCase();
    const all = below(`task/${team}/`);
    empty.textContent = all.length ? "" : "No tasks yet. Add one: ccb task create SUBJECT, or say it to the lead below Agents.";
    const shown = words
      ? all.filter((task) => `#${task.id} ${task.subject} ${task.owner ?? ""}`.toLowerCase().includes(words))
      : all;
    shown.sort((a, b) => a.id - b.id);
    /** @type {Map<string, any[]>} */
    const sorted = new Map(columns.map((column) => [column.name, []]));
    const now = new Map();
    for (const task of shown) {
      const column = columns.find((column) => column.belongs(task));
      if (!column) continue;
      sorted.get(column.name)?.push(task);
      now.set(String(task.id), column.name);
    }
    for (const column of columns) {
      const tasks = sorted.get(column.name) ?? [];
      // The last finished task comes first: people look for it.
      if (column.name === "Done") tasks.reverse();
      const limit = limits.get(column.name) ?? SHOWN;
      column.count.textContent = String(tasks.length);
      column.element.classList.toggle("empty", tasks.length === 0);
      column.element.hidden = tasks.length === 0 && column.name === "Needs a person";
      column.more.hidden = tasks.length <= limit;
      column.more.textContent = `Show more (${tasks.length - limit})`;
      keyed(column.list, tasks.slice(0, limit), (task) => String(task.id), (task) => {
        const made = card(task, page.selected(), page.open);
        const before = places.get(String(task.id));
        if (before && before !== column.name) made.firstElementChild?.classList.add("moved");
        return made;
      });
    }
    places = now;
  }

  filter.addEventListener("input", update);
  update();
  return {
    update: (/** @type {Set<string>} */ changed) => {
      for (const name of changed) if (name.startsWith(`task/${team}/`)) return update();
    },
    select: () => {
      for (const button of main.querySelectorAll("[data-task]")) {
        const pressed = button.getAttribute("data-task") === page.selected();
        button.setAttribute("aria-pressed", String(pressed));
        // The details may cover the place where it was.
        if (pressed) button.scrollIntoView({ block: "nearest", inline: "nearest" });
      }
    },
  };
}
