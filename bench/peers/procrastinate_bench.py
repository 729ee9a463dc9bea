"""Puts jobs that do nothing into procrastinate, works on them for a while, and says how many were done.

Arguments: address, jobs, workers at once, seconds.
"""

import asyncio
import importlib.metadata
import json
import sys
import time

import procrastinate
import psycopg

address, jobs, workers, seconds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
# In a schema of its own, so that it can be run again.
own = address + "?options=-csearch_path%3Dprocrastinate_bench"
app = procrastinate.App(
    connector=procrastinate.PsycopgConnector(conninfo=own, max_size=min(workers + 4, 40))
)
done = 0
last = 0.0


@app.task(name="nothing")
async def nothing(n: int) -> None:
    global done, last
    done += 1
    last = time.perf_counter()


async def main() -> None:
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS procrastinate_bench CASCADE")
        connection.execute("CREATE SCHEMA procrastinate_bench")
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        for begin in range(0, jobs, 1000):
            numbers = range(begin, min(begin + 1000, jobs))
            await nothing.batch_defer_async(*({"n": n} for n in numbers))
        start = time.perf_counter()
        worker = asyncio.create_task(
            app.run_worker_async(
                concurrency=workers, wait=True, install_signal_handlers=False, fetch_job_polling_interval=0.1
            )
        )
        while time.perf_counter() < start + seconds and done < jobs:
            await asyncio.sleep(0.02)
        result = {"jobs": done, "seconds": last - start}
        worker.cancel()
        await asyncio.gather(worker, return_exceptions=True)
        result["version"] = importlib.metadata.version("procrastinate")
        print(json.dumps(result), flush=True)


asyncio.run(main())
