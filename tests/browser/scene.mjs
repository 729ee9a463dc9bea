// A repository, a home, `ccb` in it, and a browser.
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const FLAGS = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync",
];

export class Scene {
  constructor() {
    this.dir = mkdtempSync(join(tmpdir(), "ccb-browser-"));
    this.repo = join(this.dir, "repo");
    this.children = [];
    this.env = {
      ...process.env, CCB_HOME: join(this.dir, "home"), HOME: this.dir, NO_COLOR: "1",
      GIT_AUTHOR_NAME: "test", GIT_AUTHOR_EMAIL: "test@example.com",
      GIT_COMMITTER_NAME: "test", GIT_COMMITTER_EMAIL: "test@example.com",
    };
    this.git(["init", "-q", "-b", "main", this.repo], this.dir);
    writeFileSync(join(this.repo, "a.rs"), "fn main() {\n    println!(\"old\");\n}\n");
    this.git(["add", "."]);
    this.git(["commit", "-qm", "start"]);
  }

  git(args, cwd = this.repo) {
    const done = spawnSync("git", args, { cwd, env: this.env, encoding: "utf8" });
    if (done.status !== 0) throw new Error(`git ${args.join(" ")}: ${done.stderr}`);
    return done.stdout.trim();
  }

  /** Runs ccb to its end; expects these exit codes. */
  ccb(args, codes = [0], input = undefined) {
    const done = spawnSync(process.env.CCB, args, { cwd: this.repo, env: this.env, encoding: "utf8", input });
    if (!codes.includes(done.status)) throw new Error(`ccb ${args.join(" ")}: ${done.status} ${done.stdout} ${done.stderr}`);
    return done.stdout;
  }

  /** Starts ccb. */
  start(args) {
    const child = spawn(process.env.CCB, args, { cwd: this.repo, env: this.env, stdio: ["pipe", "pipe", "ignore"] });
    this.children.push(child);
    return child;
  }

  /** Calls an MCP server, one call after the other; the server stays until the end. */
  async talk(args, calls) {
    const child = this.start(args);
    const answers = [];
    let text = "";
    let heard = () => {};
    child.stdout.on("data", (chunk) => {
      text += chunk;
      heard();
    });
    const send = (message) => child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
    for (const [id, [method, params]] of calls.entries()) {
      const answer = new Promise((done) => {
        heard = () => {
          const lines = text.split("\n").slice(0, -1).map((line) => JSON.parse(line));
          const found = lines.find((line) => line.id === id + 1);
          if (found) done(found);
        };
      });
      send({ id: id + 1, method, params });
      answers.push(await answer);
      if (method === "initialize") send({ method: "notifications/initialized" });
    }
    return answers;
  }

  /** Serves the page; resolves to its address. */
  web() {
    const child = this.start(["--json", "web", "--listen", "127.0.0.1:0"]);
    this.server = child.pid;
    return new Promise((done, failed) => {
      let text = "";
      child.stdout.on("data", (chunk) => {
        text += chunk;
        if (text.includes("\n")) done(JSON.parse(text.split("\n")[0]).web.url);
      });
      child.on("exit", (code) => failed(new Error(`ccb web ended: ${code} ${text}`)));
    });
  }

  end() {
    for (const child of this.children) child.kill("SIGKILL");
    rmSync(this.dir, { recursive: true, force: true, maxRetries: 5 });
  }
}

export function browser() {
  return chromium.launch({ executablePath: "/usr/bin/chromium", headless: true, args: FLAGS });
}

let failures = 0;

/** One thing that must be so. */
export function check(what, holds, more = "") {
  console.log(`${holds ? "ok  " : "FAIL"} ${what}${holds ? "" : ` ${more}`}`);
  if (!holds) failures += 1;
}

export function ended() {
  console.log(failures ? `${failures} failed` : "all passed");
  process.exitCode = failures ? 1 : 0;
}
