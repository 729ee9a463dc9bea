// The agents' work over time, and its costs, from the same report that `ccb report` writes.
import { get, pieces } from "./state.js";
import { duration, h, money, s, tokens } from "./dom.js";

const KINDS = ["starting", "working", "waiting", "check", "landing", "undone"];
/** Interval between two readings of the report while something runs, in ms. */
const EVERY = 5000;
const ROWS = 300;

/** @param {string} about @param {Element[]} marks */
function picture(about, marks) {
  return s("svg", { viewBox: "0 0 1000 16", preserveAspectRatio: "none", role: "img", "aria-label": about }, ...marks);
}

/** @param {any} report */
function rows(report) {
  const { fromMs, toMs } = report.timeline;
  const whole = Math.max(1, toMs - fromMs);
  const at = (/** @type {number} */ ms) => Math.min(1000, Math.max(0, ((ms - fromMs) * 1000) / whole));
  const agents = new Map(report.agents.map((/** @type {any} */ agent) => [agent.id, agent]));
  const landed = report.landings.map((/** @type {any} */ one) =>
    s("rect", { class: one.undoneAt ? "undone" : "landing", x: Math.min(997, at(Date.parse(one.at))), width: 3, height: 16 }, s("title", {}, `#${one.task ?? ""} landed`)),
  );
  const lines = report.timeline.rows.slice(0, ROWS).map((/** @type {any} */ row) => {
    const agent = agents.get(row.agent);
    const name = agent ? `${agent.name}${agent.task ? ` #${agent.task}` : ""}` : row.agent;
    const marks = row.spans.map((/** @type {any} */ span) =>
      s("rect", { class: span.what, x: at(span.fromMs), width: Math.max(1, at(span.toMs) - at(span.fromMs)), height: 16 }, s("title", {}, `${span.what} ${duration(span.toMs - span.fromMs)}`)),
    );
    return h("div", { class: "row" }, h("span", {}, name), picture(`${name} over time`, marks));
  });
  if (landed.length) lines.unshift(h("div", { class: "row" }, h("span", {}, h("b", {}, "landed")), picture("landings over time", landed)));
  return lines;
}

/** @param {string} label @param {string[]} heads @param {(string | number)[][]} cells */
function table(label, heads, cells) {
  const head = heads.map((text, n) => h("th", { class: n ? "n" : "" }, text));
  const body = cells.map((row) => h("tr", {}, ...row.map((cell, n) => h("td", { class: n ? "n" : "" }, cell))));
  return h("table", { class: "list", "aria-label": label }, h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...body));
}

/** @param {HTMLElement} main @param {string} team */
export function timeline(main, team) {
  let read = 0;
  let stopped = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  main.replaceChildren(h("p", { class: "dim" }, "Reading the runs …"));

  async function load() {
    clearTimeout(timer);
    read = Date.now();
    let report;
    try {
      report = await get("/api/report", { team });
    } catch (error) {
      if (!stopped) main.replaceChildren(h("p", { class: "dim" }, String(error instanceof Error ? error.message : error)));
      return;
    }
    if (stopped) return;
    const totals = report.totals;
    const head = pieces.get(`team/${team}`);
    const figures = [
      [`${totals.done} of ${totals.tasks}`, "tasks done"],
      [totals.landed, "landed"],
      [duration(totals.durationMs), "from start to end"],
      [head?.leftMs ? `about ${duration(head.leftMs)}` : "–", "left"],
      [tokens(totals.inputTokens + totals.outputTokens), "tokens"],
      [money(totals.costUsd), head?.costLimit ? `of ${money(head.costLimit)}` : "cost"],
      [head?.costAtEnd ? money(head.costAtEnd) : "–", "cost at the end"],
    ];
    if (totals.cacheReadTokens) figures.push([tokens(totals.cacheReadTokens), "tokens read from cache"]);
    if (totals.savedUsd) figures.push([money(totals.savedUsd), "saved by forking"]);
    const path = report.timeline.criticalPath;
    main.replaceChildren(
      h("ul", { class: "figures" }, ...figures.map(([figure, word]) => h("li", {}, h("b", {}, figure), word))),
      h("h2", {}, "Timeline"),
      h("ul", { class: "legend" }, ...KINDS.filter((kind) => kind !== "undone" || totals.undone).map((kind) => h("li", {}, s("svg", { viewBox: "0 0 1 1", "aria-hidden": "true" }, s("rect", { class: kind, width: 1, height: 1 })), kind === "landing" ? "landed" : kind))),
      ...rows(report),
      path.length > 1 ? h("p", {}, h("b", {}, "Critical path: "), path.map((/** @type {any} */ step) => `#${step.task} (${duration(step.tookMs)})`).join(" → ")) : "",
      h("h3", {}, "Cost by model"),
      table("Cost by model", ["model", "agents", "in", "out", "cost"], report.models.map((/** @type {any} */ model) => [model.name, model.agents, tokens(model.inputTokens), tokens(model.outputTokens), money(model.costUsd)])),
      h("h3", {}, "Cost by agent"),
      table("Cost by agent", ["agent", "tools", "in", "cached", "out", "cost"], report.agents.slice(-200).reverse().map((/** @type {any} */ agent) => [`${agent.name}${agent.task ? ` #${agent.task}` : ""}`, agent.toolUses, tokens(agent.inputTokens), tokens(agent.cacheReadTokens), tokens(agent.outputTokens), money(agent.costUsd)])),
      h("p", {}, h("a", { href: `/report?what=${encodeURIComponent(team)}`, target: "_blank", rel: "noopener" }, "The whole report, to keep")),
    );
  }

  load();
  return {
    update: (/** @type {Set<string>} */ changed) => {
      if (![...changed].some((name) => name.includes(`/${team}`))) return;
      clearTimeout(timer);
      timer = setTimeout(load, Math.max(0, EVERY - (Date.now() - read)));
    },
    select: () => {},
    stop: () => {
      stopped = true;
      clearTimeout(timer);
    },
  };
}

/** What has ended. @param {HTMLElement} main */
export function runs(main) {
  main.replaceChildren(h("p", { class: "dim" }, "Reading …"));
  get("/api/runs").then(
    (all) => {
      if (!all.length) return main.replaceChildren(h("p", { class: "dim" }, "No session or plan has ended here."));
      const row = (/** @type {any} */ one) =>
        h("tr", {},
          h("td", {}, h("a", { href: `/report?what=${encodeURIComponent(one.id)}`, target: "_blank", rel: "noopener" }, one.id)),
          h("td", {}, one.words),
          h("td", { class: "n wide" }, duration(one.totals.durationMs)),
          h("td", { class: "n" }, one.totals.landed),
          h("td", { class: "n" }, money(one.totals.costUsd)));
      const heads = ["run", "how it ended"].map((text) => h("th", {}, text));
      const figures = [["took", "n wide"], ["landed", "n"], ["cost", "n"]].map(([text, style]) => h("th", { class: style }, text));
      main.replaceChildren(h("table", { class: "list" }, h("thead", {}, h("tr", {}, ...heads, ...figures)), h("tbody", {}, ...all.map(row))));
    },
    (error) => main.replaceChildren(h("p", { class: "bad" }, error.message)),
  );
  return { update: () => {}, select: () => {} };
}
