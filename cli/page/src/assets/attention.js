// The entries that need a person, with the same answers as the terminal.
import { act, pieces } from "./state.js";
import { ask, capital, h, keyed, toast } from "./dom.js";

const GOOD = new Set(["approve", "land", "retry", "resume"]);
const GRAVE = new Set(["deny", "stop", "reject", "undo"]);

/** The text an act still needs goes into this field. @type {Record<string, string>} */
const FIELDS = { message: "text", say: "text", deny: "why", reject: "feedback", addTask: "subject" };
/** The question before an act that is hard to undo. @type {Record<string, string>} */
const SURE = { stop: "Stop this agent? Its task is free again.", undo: "Take this landing off its branch?" };

/**
 * Performs an act, after asking for its missing text.
 * @param {string} team
 * @param {{act: any, word: string, asksFor?: string | null}} answer
 * @returns {Promise<boolean>}
 */
export async function perform(team, answer) {
  const wanted = { ...answer.act };
  if (answer.asksFor) {
    const text = await ask(`${capital(answer.word)}: ${answer.asksFor}?`, { text: true, word: answer.word });
    if (!text) return false;
    wanted[FIELDS[wanted.do]] = text;
  } else if (SURE[wanted.do]) {
    if ((await ask(SURE[wanted.do], { text: false, word: answer.word })) === null) return false;
  }
  try {
    toast(await act(team, wanted));
    return true;
  } catch (error) {
    toast(String(error instanceof Error ? error.message : error), true);
    return false;
  }
}

/** @param {string} team @param {{act: any, word: string, asksFor?: string | null, command?: string}} answer */
export function button(team, answer) {
  const style = GOOD.has(answer.word) ? "main" : GRAVE.has(answer.word) ? "bad" : "";
  /** @type {HTMLButtonElement} */
  const made = /** @type {any} */ (h("button", { class: style, title: answer.command, "data-do": answer.act.do }, capital(answer.word)));
  made.addEventListener("click", async () => {
    made.disabled = true;
    await perform(team, answer);
    made.disabled = false;
  });
  return made;
}

/** @param {any} one */
function name(one) {
  return [one.need, one.team, one.task, one.agent, one.request, one.request ? "" : one.what].join(" ");
}

/**
 * @param {HTMLElement} main
 * @param {{openTask: (team: string, id: string) => void}} page
 */
export function attention(main, page) {
  const list = h("ul", { class: "needs" });
  const empty = h("p", { class: "dim" });
  main.replaceChildren(empty, list);
  /** Unchanged entries remain the same objects. @type {Map<string, [string, any]>} */
  let before = new Map();

  /** @param {any} one */
  function need(one) {
    const look = one.task
      ? h("button", { click: () => page.openTask(one.team, String(one.task)) }, `Look at #${one.task}`)
      : null;
    return h(
      "li",
      { class: "need", "data-need": one.need },
      h("p", {}, h("b", {}, one.what), " ", h("span", { class: "dim" }, one.team)),
      one.detail.trim() ? h("pre", { tabindex: 0 }, one.detail) : null,
      h("p", { class: "dim" }, "In a terminal: ", h("code", {}, one.command)),
      h("div", { class: "buttons" }, ...one.answers.map((/** @type {any} */ answer) => button(one.team, answer)), look),
    );
  }

  function update() {
    const after = new Map();
    const all = (pieces.get("attention") ?? []).map((/** @type {any} */ one) => {
      const [key, text] = [name(one), JSON.stringify(one)];
      const old = before.get(key);
      const item = old && old[0] === text ? old[1] : one;
      after.set(key, [text, item]);
      return item;
    });
    before = after;
    empty.textContent = all.length ? "" : "Nothing needs you.";
    keyed(list, all, name, need);
  }

  update();
  return {
    update: (/** @type {Set<string>} */ changed) => {
      if (changed.has("attention")) update();
    },
    select: () => {},
  };
}
