// The page and the report in Chromium: what a person does, what it looks like, what it asks for.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { Scene, browser, check, ended } from "./scene.mjs";

const AXE = readFileSync(join(process.env.OUT, "node_modules/axe-core/axe.min.js"), "utf8");
const HOSTILE = "<img src=x onerror=alert(1)> \u202egnp.exe <script>alert(2)</script>";

/** Serious violations that axe finds. */
async function violations(page) {
  await page.evaluate(AXE);
  const found = await page.evaluate(() => globalThis.axe.run({ resultTypes: ["violations"] }));
  return found.violations
    .filter((one) => one.impact === "serious" || one.impact === "critical")
    .map((one) => `${one.id}: ${one.nodes.map((node) => `${node.target} ${node.failureSummary}`).slice(0, 3).join(" | ")}`);
}

/** Pictures at both widths, in both colours, and what axe says of each. */
async function pictures(context, page, name) {
  for (const [width, height] of [[1440, 900], [390, 844]]) {
    for (const colorScheme of ["light", "dark"]) {
      await page.setViewportSize({ width, height });
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      await page.waitForTimeout(150);
      await page.screenshot({ path: join(process.env.OUT, `${name}-${width}-${colorScheme}.png`) });
      const found = await violations(page);
      check(`${name} at ${width} in ${colorScheme}: no serious violation`, found.length === 0, found.join("\n"));
      const wide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth + 1);
      check(`${name} at ${width}: nothing sticks out`, !wide);
    }
  }
  await page.setViewportSize({ width: 1440, height: 900 });
  await page.emulateMedia({ colorScheme: "light", reducedMotion: "reduce" });
}

/** A teammate hands in a plan through the MCP server, as an agent does. */
async function handInPlan(scene) {
  scene.ccb(["team", "create", "crew"]);
  scene.ccb(["--as", "alice", "team", "join", "crew"]);
  const clientInfo = { name: "test", version: "1" };
  const answers = await scene.talk(["--team", "crew", "--as", "alice", "mcp", "--role", "teammate"], [
    ["initialize", { protocolVersion: "2025-06-18", capabilities: {}, clientInfo }],
    ["tools/call", { name: "EnterPlanMode", arguments: {} }],
    ["tools/call", { name: "ExitPlanMode", arguments: { plan: `1. Look at a.rs\n2. ${HOSTILE}` } }],
  ]);
  return JSON.stringify(answers);
}

async function main() {
  const scene = new Scene();
  const chrome = await browser();
  try {
    const plan = await handInPlan(scene);
    const make = ["--team", "crew", "task", "create"];
    scene.ccb([...make, "Change the greeting", "--run", "sleep 1; sed -i s/old/new/ a.rs", "--verify", "grep -q new a.rs"]);
    scene.ccb([...make, `Write notes ${HOSTILE}`, "--run", "echo notes > notes.md", "--verify", "test -s notes.md", "--blocked-by", "1"]);
    scene.ccb([...make, "Never works", "--run", "echo tried > x", "--verify", "echo the check says no; false"]);
    const url = await scene.web();
    const origin = new URL(url).origin;
    const context = await chrome.newContext({ viewport: { width: 1440, height: 900 } });
    const page = await context.newPage();
    const asked = [];
    const wrong = [];
    page.on("request", (request) => asked.push(request.url()));
    page.on("pageerror", (error) => wrong.push(String(error)));
    page.on("console", (message) => {
      if (message.type() === "error") wrong.push(message.text());
    });
    page.on("dialog", (dialog) => wrong.push(`dialog: ${dialog.message()}`));

    await page.goto(url);
    await page.waitForSelector("[data-task='1']");
    check("the code is not in the address", !page.url().includes("code"), page.url());
    check("a task is ready", await page.locator("section[aria-label='Ready'] [data-task='1']").isVisible());

    // A session runs: the task moves.
    scene.start(["--team", "crew", "--runtime", "shell", "--merge", "never", "--attempts", "1"]);
    await page.waitForSelector("section[aria-label='In progress'] [data-task='1']", { timeout: 30000 });
    check("a task moves to In progress", true);
    await page.waitForSelector("section[aria-label='Done, not landed'] [data-task='1']", { timeout: 30000 });
    check("and to Done, not landed", true);
    await page.waitForSelector("section[aria-label='Needs a person'] [data-task='3']", { timeout: 30000 });
    await page.waitForSelector("section[aria-label='Done, not landed'] [data-task='2']", { timeout: 30000 });
    check("hostile text is text", (await page.locator("[data-task='2']").textContent()).includes("<img src=x"));
    check("nothing hostile became an element", (await page.locator("main img, main script").count()) === 0);

    // Read a diff.
    await page.click("[data-task='1']");
    await page.waitForSelector("#panel table.diff");
    const diff = await page.locator("#panel table.diff").innerText();
    check("the diff is there, side by side", diff.includes("old") && diff.includes("new"), diff);
    check("and coloured", (await page.locator("#panel table.diff .k").count()) > 0 && (await page.locator("#panel table.diff .s").count()) > 0);
    check("a task names its agents", (await page.locator("#panel [data-of]").count()) === 1);
    await pictures(context, page, "task");
    await page.keyboard.press("Escape");
    check("Escape closes the details", await page.locator("#panel").isHidden());
    await pictures(context, page, "board");

    // The same with the keyboard alone, which comes back to where it was.
    await page.focus("[data-task='1']");
    await page.keyboard.press("Enter");
    await page.waitForSelector("#panel table.diff");
    const inside = await page.evaluate(() => document.activeElement?.closest("#panel") !== null);
    check("Enter opens the details and goes there", inside);
    await page.keyboard.press("Escape");
    const back = await page.evaluate(() => document.activeElement?.getAttribute("data-task"));
    check("Escape goes back to the task", back === "1", String(back));
    await page.keyboard.press("/");
    await page.keyboard.type("greeting");
    await page.waitForSelector("[data-task='2']", { state: "detached" });
    check("/ filters the board", (await page.locator("main [data-task]").count()) === 1);
    await page.fill("#filter", "");
    await page.locator("#filter").blur();

    // Approve a plan.
    await page.keyboard.press("4");
    await page.waitForSelector("[data-need='plan']", { timeout: 20000 }).catch(() => {});
    check("a plan waits for approval", await page.locator("[data-need='plan']").isVisible(), plan);
    await pictures(context, page, "attention");
    await page.click("[data-need='plan'] [data-do='approve']");
    await page.waitForSelector("[data-need='plan']", { state: "detached", timeout: 20000 });
    const requests = scene.ccb(["--json", "--team", "crew", "mail", "requests", "--all"], [0, 2]);
    check("the plan is approved", requests.includes("approved"), requests);

    // Reject a result with feedback. The session has ended, so the task is ready again.
    await page.keyboard.press("1");
    await page.click("[data-task='2']");
    await page.click("#panel [data-do='reject']");
    await page.fill("#ask-text", "shorter, please");
    await page.click("#ask button.main");
    await page.waitForSelector("section[aria-label='Ready'] [data-task='2']", { timeout: 20000 });
    check("a rejected task is open again", scene.ccb(["--json", "--team", "crew", "task", "show", "2"]).includes("shorter, please"));

    // Land, and undo.
    await page.click("[data-task='1']");
    await page.click("#panel [data-do='land']");
    await page.waitForSelector("section[aria-label='Done'] [data-task='1']", { timeout: 30000 });
    check("it landed", scene.git(["show", "main:a.rs"]).includes("new"));
    await page.waitForSelector("#panel [data-do='undo']");
    await page.click("#panel [data-do='undo']");
    await page.click("#ask button.main");
    await page.waitForSelector("section[aria-label='Done, not landed'] [data-task='1']", { timeout: 30000 });
    check("and that was undone", scene.git(["show", "main:a.rs"]).includes("old"));
    await page.keyboard.press("Escape");

    for (const [key, name] of [["2", "graph"], ["3", "agents"], ["5", "timeline"], ["6", "runs"]]) {
      await page.keyboard.press(key);
      await page.waitForTimeout(name === "timeline" ? 1500 : 500);
      await pictures(context, page, name);
    }
    await page.keyboard.press("3");
    await page.waitForSelector("[data-agent]", { state: "attached" });
    const fold = page.locator("main details summary");
    if (await fold.isVisible()) await fold.click();
    await page.locator("[data-agent]").first().click();
    await page.waitForSelector("#panel .entry", { timeout: 20000 });
    check("a transcript is shown", (await page.locator("#panel .entry").count()) > 1);
    await pictures(context, page, "agent");

    check("the page asks for nothing elsewhere", asked.every((to) => to.startsWith(origin)), asked.join(" "));
    check("no error, no dialog", wrong.length === 0, wrong.join("\n"));

    await crossOrigin(chrome, origin);
    await report(scene, chrome);
  } finally {
    await chrome.close();
    scene.end();
    ended();
  }
}

/** A page of another origin cannot ask, and cannot show ours. */
async function crossOrigin(chrome, origin) {
  const page = await (await chrome.newContext()).newPage();
  await page.goto("data:text/html,<p>elsewhere</p>");
  const said = await page.evaluate(async (origin) => {
    try {
      const answer = await fetch(`${origin}/api/act`, { method: "POST", body: "{}", credentials: "include" });
      return `answered ${answer.status}`;
    } catch {
      return "refused";
    }
  }, origin);
  check("a page of another origin is refused", said === "refused", said);
}

/** The report opened from the disk shows everything and asks for nothing. */
async function report(scene, chrome) {
  const file = join(scene.dir, "report.html");
  scene.ccb(["--team", "crew", "report", "--html", file]);
  const context = await chrome.newContext({ viewport: { width: 1440, height: 900 } });
  const page = await context.newPage();
  const asked = [];
  const wrong = [];
  page.on("request", (request) => asked.push(request.url()));
  page.on("console", (message) => wrong.push(message.text()));
  page.on("dialog", (dialog) => wrong.push(`dialog: ${dialog.message()}`));
  await page.goto(pathToFileURL(file).href);
  check("the report asks for nothing but itself", asked.length === 1 && asked[0].startsWith("file:"), asked.join(" "));
  const text = await page.evaluate(() => {
    for (const fold of document.querySelectorAll("details")) fold.open = true;
    return document.body.innerText;
  });
  for (const part of ["Change the greeting", "<img src=x", "the check says no", "Timeline", "Agents", "Landings", "undone"]) {
    check(`the report shows ${part}`, text.includes(part));
  }
  check("the report has no script and no picture", (await page.locator("script, img").count()) === 0);
  check("the report says nothing wrong", wrong.length === 0, wrong.join("\n"));
  await page.evaluate(() => {
    for (const fold of document.querySelectorAll("details")) fold.open = false;
  });
  await pictures(context, page, "report");
}

await main();
