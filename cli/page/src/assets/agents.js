// The agents and their progress.
import { act, below, pieces } from "./state.js";
import { ask, duration, h, keyed, money, toast, tokens } from "./dom.js";

/** Maximum time to draw in one frame, in ms; the rest is drawn in the next frames. */
const SLICE = 8;
/** Time after its end until an agent is listed among the finished ones, in ms. */
const FOLD = 30000;

/** @param {any} agent @returns {[string, string]} */
function state(agent) {
  if (agent.marks.length) return ["warn", agent.marks[0]];
  if (agent.stalled) return ["warn", agent.stalled];
  if (agent.silentMs) return ["warn", `silent for ${duration(agent.silentMs)}`];
  if (agent.alive) return ["run", agent.state];
  if (agent.state === "completed") return ["ok", agent.outcome ?? "completed"];
  return ["bad", agent.outcome ?? agent.state];
}

/**
 * @param {HTMLElement} main
 * @param {string} team
 * @param {{selected: () => string | null, open: (id: string) => void}} page
 */
export function agents(main, team, page) {
  const say = h("button", { click: saySomething });
  const alive = h("ul", { class: "agents" });
  const ended = h("ul", { class: "agents" });
  const summary = h("summary", {});
  const fold = h("details", {}, summary, ended);
  const empty = h("p", { class: "dim" });
  main.replaceChildren(h("div", { class: "bar" }, say), empty, alive, fold);

  async function saySomething() {
    const person = pieces.get(`team/${team}`)?.personLeads;
    const text = await ask(person ? "What is to be done? It becomes a task." : "What should the lead know?", { text: true, word: person ? "Add the task" : "Send" });
    if (!text) return;
    try {
      toast(await act(team, { do: "say", text }));
    } catch (error) {
      toast(String(error instanceof Error ? error.message : error), true);
    }
  }

  /** @param {any} agent */
  function make(agent) {
    const button = h(
      "button",
      { class: "card", "data-agent": agent.id, click: () => page.open(agent.id) },
      h("b", {}, agent.name),
      h("span"),
      h("small"),
      h("small"),
      h("small", { class: "mono" }),
    );
    const card = h("li", {}, button);
    patch(card, agent);
    return card;
  }

  /** Hundreds of agents change several times a second: only words that differ are updated. @param {HTMLElement} card @param {any} agent */
  function patch(card, agent) {
    const button = /** @type {HTMLElement} */ (card.firstElementChild);
    const [, what, how, facts, last] = /** @type {HTMLElement[]} */ ([...button.children]);
    const [style, words] = state(agent);
    const known = [agent.runtime, agent.model, agent.tokens ? `${tokens(agent.tokens)} tokens` : null, agent.cost ? money(agent.cost) : null];
    put(what, `${agent.task ? ` #${agent.task} ` : " "}${agent.doing}`);
    put(how, words);
    put(facts, known.filter(Boolean).join(" · "));
    put(last, agent.last ?? "");
    if (how.className !== style) how.className = style;
    const pressed = String(page.selected() === agent.id);
    if (button.getAttribute("aria-pressed") !== pressed) button.setAttribute("aria-pressed", pressed);
  }

  /** Cards whose words are not drawn yet. @type {Map<HTMLElement, any>} */
  const stale = new Map();

  /** Draws a few cards per frame, so that hundreds that change at once never block the page. @param {HTMLElement} card @param {any} agent */
  function soon(card, agent) {
    if (!stale.size) requestAnimationFrame(slice);
    stale.set(card, agent);
  }

  function slice() {
    const end = performance.now() + SLICE;
    for (const [card, agent] of stale) {
      stale.delete(card);
      patch(card, agent);
      if (performance.now() > end) break;
    }
    if (stale.size) requestAnimationFrame(slice);
  }

  /** @param {HTMLElement} element @param {string} text */
  function put(element, text) {
    if (element.textContent !== text) element.textContent = text;
  }

  function update() {
    const all = below(`agent/${team}/`);
    const person = pieces.get(`team/${team}`)?.personLeads;
    say.textContent = person ? "Add a task" : "Say something to the lead";
    all.sort((a, b) => b.sinceMs - a.sinceMs);
    const now = Date.now();
    const fresh = all.filter((agent) => agent.alive || (agent.endedMs && now - agent.endedMs < FOLD));
    const old = all.filter((agent) => !(agent.alive || (agent.endedMs && now - agent.endedMs < FOLD)));
    empty.textContent = all.length ? "" : "No agent has worked here yet.";
    summary.textContent = `${old.length} ended`;
    fold.hidden = old.length === 0;
    keyed(alive, fresh, (agent) => agent.id, make, soon);
    keyed(ended, old.slice(0, 500), (agent) => agent.id, make, soon);
  }

  update();
  return {
    update: (/** @type {Set<string>} */ changed) => {
      for (const name of changed) if (name.startsWith(`agent/${team}/`) || name === `team/${team}`) return update();
    },
    select: () => {
      for (const button of main.querySelectorAll("[data-agent]")) {
        button.setAttribute("aria-pressed", String(button.getAttribute("data-agent") === page.selected()));
      }
    },
  };
}
