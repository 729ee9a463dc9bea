// A diff, side by side.
import { h } from "./dom.js";

/** Maximum lines of a file drawn at first. */
const SHOWN = 1500;
const WORDS =
  /(\/\/.*$|#(?!\[).*$|\/\*.*?\*\/)|("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|`(?:\\.|[^`\\])*`)|\b(async|await|break|case|class|const|continue|def|else|enum|export|fn|for|from|func|function|if|impl|import|in|interface|let|loop|match|mod|mut|new|package|pub|return|self|static|struct|switch|trait|try|type|use|var|where|while|with|yield|true|false|None|null|nil)\b/g;

/** Colours words, strings and comments; a line at a time, whatever the language. @param {string} text */
function coloured(text) {
  // Long lines are data: no person reads them word by word.
  if (text.length > 500) return [text];
  const parts = [];
  let at = 0;
  for (const found of text.matchAll(WORDS)) {
    const from = found.index ?? 0;
    if (from > at) parts.push(text.slice(at, from));
    const style = found[1] ? "c" : found[2] ? "s" : "k";
    parts.push(h("span", { class: style }, found[0]));
    at = from + found[0].length;
  }
  if (at < text.length) parts.push(text.slice(at));
  return parts;
}

/**
 * @typedef {{old: [number, string] | null, new: [number, string] | null, head?: string}} Line
 * @param {string[]} lines
 * @returns {{name: string, lines: Line[]}[]}
 */
export function files(lines) {
  /** @type {{name: string, lines: Line[]}[]} */
  const all = [];
  /** @type {{name: string, lines: Line[]} | null} */
  let file = null;
  let [before, after] = [0, 0];
  let inside = false;
  /** @type {[number, string][]} */
  let gone = [];
  /** @type {[number, string][]} */
  let come = [];
  const flush = () => {
    for (let n = 0; n < Math.max(gone.length, come.length); n++) {
      file?.lines.push({ old: gone[n] ?? null, new: come[n] ?? null });
    }
    [gone, come] = [[], []];
  };
  for (const line of lines) {
    const hunk = /^@@ -(\d+)(?:,\d+)? \+(\d+)/.exec(line);
    if (line.startsWith("diff --git ")) {
      flush();
      inside = false;
      file = { name: line.replace(/^diff --git a\/.* b\//, ""), lines: [] };
      all.push(file);
    } else if (!file) {
      continue;
    } else if (hunk) {
      flush();
      inside = true;
      [before, after] = [Number(hunk[1]), Number(hunk[2])];
      file.lines.push({ old: null, new: null, head: line });
    } else if (inside && line.startsWith("+")) come.push([after++, line.slice(1)]);
    else if (inside && line.startsWith("-")) gone.push([before++, line.slice(1)]);
    else if (inside && !line.startsWith("\\")) {
      flush();
      const text = line.slice(1);
      file.lines.push({ old: [before++, text], new: [after++, text] });
    } else if (/^(Binary|new file|deleted file|rename|old mode|new mode)/.test(line)) {
      file.lines.push({ old: null, new: null, head: line });
    }
  }
  flush();
  return all;
}

/** @param {Line} line */
function row(line) {
  if (line.head !== undefined) return h("tr", { class: "h" }, h("td", { colspan: 4 }, line.head));
  const same = line.old && line.new && line.old[1] === line.new[1];
  /** @param {[number, string] | null} side @param {string} style */
  const cells = (side, style) => [
    h("td", { class: "n" }, side ? side[0] : ""),
    h("td", { class: same || !side ? "" : style }, ...(side ? coloured(side[1]) : [])),
  ];
  return h("tr", {}, ...cells(line.old, "d"), ...cells(line.new, "a"));
}

/** A row of four cells: number, text, number, text. */
function columns() {
  return h("colgroup", {}, h("col", { class: "n" }), h("col"), h("col", { class: "n" }), h("col"));
}

/** @param {{files: any[], diff: string[], cut: boolean, uncommitted: boolean}} changes */
export function diff(changes) {
  const box = h("div", { class: "changes" });
  const count = (/** @type {"added" | "deleted"} */ of) => changes.files.reduce((sum, file) => sum + (file[of] ?? 0), 0);
  box.append(
    h("p", {}, `${changes.files.length} file${changes.files.length === 1 ? "" : "s"} `, h("span", { class: "ok" }, `+${count("added")}`), " ", h("span", { class: "bad" }, `−${count("deleted")}`), changes.uncommitted ? h("span", { class: "dim" }, " (not all of it is committed)") : null),
  );
  for (const file of files(changes.diff)) {
    const body = h("tbody", {}, ...file.lines.slice(0, SHOWN).map(row));
    const table = h("table", { class: "diff" }, h("caption", {}, file.name), columns(), body);
    box.append(h("div", { tabindex: 0, role: "region", "aria-label": `Changes of ${file.name}` }, table));
    if (file.lines.length > SHOWN) {
      const more = h("button", {}, `Show ${file.lines.length - SHOWN} more lines`);
      more.addEventListener("click", () => {
        body.append(...file.lines.slice(SHOWN).map(row));
        more.remove();
      });
      box.append(more);
    }
  }
  if (changes.cut) box.append(h("p", { class: "dim" }, "The diff goes on; ccb diff shows all of it."));
  return box;
}
