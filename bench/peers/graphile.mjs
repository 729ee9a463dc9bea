// Puts jobs that do nothing into graphile-worker, works on them for a while, and says how many were done.
// Arguments: address, jobs, workers at once, seconds.
import { readFileSync } from "node:fs";
import { Logger, run, runMigrations } from "graphile-worker";
import pg from "pg";

const [connectionString, jobs, concurrency, seconds] = process.argv.slice(2);
const logger = new Logger(() => () => {});
const pool = new pg.Pool({ connectionString, max: Number(concurrency) + 4 });
pool.on("error", () => {});
await runMigrations({ pgPool: pool, logger });
await pool.query("SELECT graphile_worker.add_job('nothing', json_build_object('n', n)) FROM generate_series(1, $1::int) n", [jobs]);
await pool.query("VACUUM ANALYZE");
let done = 0;
let last = 0;
const start = performance.now();
const runner = await run({
  pgPool: pool,
  logger,
  concurrency: Number(concurrency),
  noHandleSignals: true,
  pollInterval: 100,
  taskList: {
    nothing: async () => {
      done += 1;
      last = performance.now();
    },
  },
});
const over = start + 1000 * Number(seconds);
while (performance.now() < over && done < Number(jobs)) {
  await new Promise((resolve) => setTimeout(resolve, 20));
}
const result = { jobs: done, seconds: (last - start) / 1000 };
await runner.stop().catch(() => {});
await pool.query("DROP SCHEMA graphile_worker CASCADE");
const about = JSON.parse(readFileSync(new URL("node_modules/graphile-worker/package.json", import.meta.url)));
console.log(JSON.stringify({ ...result, version: about.version }));
process.exit(0);
