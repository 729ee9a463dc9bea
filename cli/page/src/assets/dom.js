// Makes elements. Text is always text: nothing here, or anywhere in this page, parses markup.

/**
 * @typedef {Node | string | number | null | undefined | false} Child
 * @typedef {Record<string, string | number | boolean | null | undefined | ((event: Event) => void)>} Attributes
 */

/** @param {Element} element @param {Attributes} attributes */
function give(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name, value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
}

/** @param {Element} element @param {Child[]} children */
function fill(element, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
}

/**
 * @param {string} name
 * @param {Attributes} [attributes]
 * @param {...Child} children
 * @returns {HTMLElement}
 */
export function h(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  give(element, attributes);
  fill(element, children);
  return element;
}

/**
 * The same for SVG elements.
 * @param {string} name
 * @param {Attributes} [attributes]
 * @param {...Child} children
 */
export function s(name, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  give(element, attributes);
  fill(element, children);
  return element;
}

/** @param {string} id */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`no #${id}`);
  return found;
}

/** @param {number} ms */
export function duration(ms) {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds / 60) % 60)} min`;
}

/** @param {number} number */
export function tokens(number) {
  if (number < 1000) return String(number);
  if (number < 1e6) return `${(number / 1000).toFixed(1)}k`;
  return `${(number / 1e6).toFixed(1)}M`;
}

/** @param {number} usd */
export function money(usd) {
  if (!usd) return "–";
  return usd < 0.01 ? "under $0.01" : `$${usd.toFixed(2)}`;
}

/** @param {number} ms */
export function clock(ms) {
  return ms ? new Date(ms).toLocaleTimeString() : "";
}

/** A word as a button's label. @param {string} word */
export function capital(word) {
  return word.slice(0, 1).toUpperCase() + word.slice(1);
}

/** Shows a line for a while. @param {string} text @param {boolean} [bad] */
export function toast(text, bad = false) {
  const line = h("div", { class: bad ? "toast bad" : "toast" }, text);
  byId("toasts").append(line);
  setTimeout(() => line.remove(), bad ? 12000 : 5000);
}

/**
 * Asks for a text, or for a yes. Null if the person cancels.
 * @param {string} what
 * @param {{text: boolean, word: string}} how
 * @returns {Promise<string | null>}
 */
export function ask(what, how) {
  const dialog = /** @type {HTMLDialogElement} */ (byId("ask"));
  const form = dialog.querySelector("form");
  if (!form) return Promise.resolve(null);
  const input = h("textarea", { id: "ask-text", required: true, maxlength: 20000 });
  const no = h("button", { type: "button", click: () => dialog.close("") }, "Cancel");
  const yes = h("button", { class: "main", value: "yes" }, capital(how.word));
  form.replaceChildren(
    how.text ? h("label", { for: "ask-text" }, what) : h("p", {}, what),
    how.text ? input : "",
    h("div", { class: "buttons" }, yes, no),
  );
  dialog.returnValue = "";
  dialog.showModal();
  (how.text ? input : yes).focus();
  return new Promise((done) => {
    dialog.addEventListener(
      "close",
      () => {
        const text = /** @type {HTMLTextAreaElement} */ (input).value.trim();
        done(dialog.returnValue === "yes" ? (how.text ? text || null : "") : null);
      },
      { once: true },
    );
  });
}

/**
 * Makes the children of a list match the items. The elements of unchanged objects are kept, so
 * that little is drawn when little has changed.
 * @template T
 * @param {Element} list
 * @param {T[]} items
 * @param {(item: T) => string} key
 * @param {(item: T) => HTMLElement} make
 * @param {(element: HTMLElement, item: T) => void} [patch] changes an element in place, which is
 *   cheaper where much changes often; without it the element is made anew
 */
export function keyed(list, items, key, make, patch) {
  /** @type {Map<string, {item: T, element: HTMLElement}>} */
  const before = known.get(list) ?? new Map();
  const after = new Map();
  let at = list.firstElementChild;
  for (const item of items) {
    const name = key(item);
    const old = before.get(name);
    let element = old?.element;
    if (old && element && old.item !== item && patch) patch(element, item);
    else if (!old || !element || old.item !== item) {
      const fresh = make(item);
      if (element) {
        const inside = element.contains(document.activeElement);
        if (at === element) at = fresh;
        element.replaceWith(fresh);
        if (inside) (fresh.querySelector("button") ?? fresh).focus();
      }
      element = fresh;
    }
    if (at === element) at = at.nextElementSibling;
    else list.insertBefore(element, at);
    after.set(name, { item, element });
  }
  for (const [name, { element }] of before) if (!after.has(name)) element.remove();
  known.set(list, after);
}

/** @type {WeakMap<Element, Map<string, any>>} */
const known = new WeakMap();
