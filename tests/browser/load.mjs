// What many agents and many tasks cost: the page's long tasks, the server's share of a core, and how soon
// a board is seen. Prints a table; the aims are 100 ms, 10 % and 1 s.
//
//   tests/browser/run.sh load [SECONDS]      10 by default; CCB=target/release/ccb for figures that count
import { spawn } from "node:child_process";
import { readFileSync, readdirSync } from "node:fs";
import { Scene, browser } from "./scene.mjs";

const SECONDS = Number(process.argv[2] ?? 10);
const TEAM = "busy";

/** Processor time a process has used, in seconds. */
function used(pid) {
  let sum = 0;
  for (const task of readdirSync(`/proc/${pid}/task`)) {
    sum += Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, "utf8").split(" ")[0]);
  }
  return sum / 1e9;
}

function megabytes(pid) {
  const line = readFileSync(`/proc/${pid}/status`, "utf8").split("\n").find((line) => line.startsWith("VmHWM"));
  return Number(line.replace(/\D+/g, "")) / 1024;
}

/** Agents at work in a team of the scene; resolves when they are. */
function work(scene, agents, updates, tasks) {
  scene.ccb(["team", "create", TEAM]);
  const args = [scene.env.CCB_HOME, TEAM, agents, updates, tasks].map(String);
  const child = spawn(process.env.BUSY, args, { stdio: ["pipe", "pipe", "inherit"] });
  scene.children.push(child);
  return new Promise((done, failed) => {
    child.stdout.once("data", () => done(child));
    child.once("exit", (code) => failed(new Error(`busy-agents ended: ${code}`)));
  });
}

/** A page that notes what takes long, and when the first card was painted. */
async function open(chrome, url, view, card) {
  const context = await chrome.newContext({ viewport: { width: 1440, height: 900 } });
  const page = await context.newPage();
  await page.addInitScript((card) => {
    globalThis.long = [];
    globalThis.seen = null;
    const observer = new PerformanceObserver((list) => globalThis.long.push(...list.getEntries().map((one) => one.duration)));
    observer.observe({ type: "longtask", buffered: true });
    const look = () => {
      // The frame after the one in which it is there has painted it.
      if (document.querySelector(card)) requestAnimationFrame(() => setTimeout(() => (globalThis.seen = performance.now())));
      else requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
  }, card);
  await page.goto(url);
  await page.waitForSelector("#tabs button");
  // A second time, as somebody who is signed in.
  await page.goto(`${new URL(url).origin}/#${TEAM}/${view}`);
  await page.reload();
  // The page's policy forbids what `waitForFunction` does.
  while ((await page.evaluate(() => globalThis.seen)) === null) await page.waitForTimeout(50);
  return page;
}

/** Processor time the page's main thread has used, in seconds: a busy machine does not add to it. */
async function drawn(session) {
  const { metrics } = await session.send("Performance.getMetrics");
  return metrics.find((one) => one.name === "TaskDuration").value;
}

/** Looks at agents at work. */
async function watch(chrome, agents, updates, tasks, view) {
  const scene = new Scene();
  try {
    await work(scene, agents, updates, tasks);
    const url = await scene.web();
    const page = await open(chrome, url, view, view === "agents" ? "[data-agent]" : "[data-task]");
    await page.waitForTimeout(2000);
    await page.evaluate(() => (globalThis.long = []));
    const session = await page.context().newCDPSession(page);
    await session.send("Performance.enable", { timeDomain: "threadTicks" });
    const [began, before, first] = [Date.now(), used(scene.server), await drawn(session)];
    await page.waitForTimeout(SECONDS * 1000);
    const seconds = (Date.now() - began) / 1000;
    const share = ((used(scene.server) - before) / seconds) * 100;
    const own = (((await drawn(session)) - first) / seconds) * 100;
    const long = await page.evaluate(() => globalThis.long);
    await page.context().close();
    return [
      `${agents} agents, ${updates} updates a second each, ${tasks + agents} tasks, ${view}`,
      `${Math.max(0, ...long).toFixed(0)} ms (${long.length})`, `${own.toFixed(1)} %`, `${share.toFixed(1)} %`, `${megabytes(scene.server).toFixed(0)} MB`, "",
    ];
  } finally {
    scene.end();
  }
}

/** Opens a large board. */
async function paint(chrome, tasks) {
  const scene = new Scene();
  try {
    await work(scene, 1, 1, tasks - 1);
    const url = await scene.web();
    const page = await open(chrome, url, "board", "[data-task]");
    const [seen, long] = await page.evaluate(() => [globalThis.seen, globalThis.long]);
    await page.context().close();
    return [`a board of ${tasks} tasks`, `${Math.max(0, ...long).toFixed(0)} ms (${long.length})`, "", "", `${megabytes(scene.server).toFixed(0)} MB`, `${seen.toFixed(0)} ms`];
  } finally {
    scene.end();
  }
}

const chrome = await browser();
try {
  const rows = [["what", "longest task (over 50 ms)", "page, of a core", "server, of a core", "server's memory", "first card painted"]];
  rows.push(rows[0].map(() => "---"));
  const print = (row) => console.log(`| ${row.join(" | ")} |`);
  rows.forEach(print);
  for (const [agents, updates, tasks, view] of [[200, 20, 0, "agents"], [200, 20, 0, "board"], [200, 20, 10000, "board"]]) {
    print(await watch(chrome, agents, updates, tasks, view));
  }
  for (const tasks of [1000, 10000]) print(await paint(chrome, tasks));
} finally {
  await chrome.close();
}
