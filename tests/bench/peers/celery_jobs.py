"""Jobs through Celery and Redis, Debian's.

    celery_jobs.py work PORT REPLY_BYTES | submit PORT SECONDS WINDOW REQUEST_BYTES

A worker is one process of the prefork pool; results come back through Redis. All else is as Celery has it. Left out,
against Muster: leases (its acknowledgements come before the job unless they are asked for), retries, a store.
"""

import collections
import os
import sys
import time

from celery import Celery

verb, port, *numbers = sys.argv[1:]
redis = f"redis://127.0.0.1:{port}/0"
app = Celery("jobs", broker=redis, backend=redis)


@app.task(name="job")
def job(_request):
    return "r" * int(numbers[0])


def submit(seconds, window, size):
    body = "q" * size
    job.delay(body).get(timeout=60)
    flying = collections.deque(job.delay(body) for _ in range(window))
    begun = time.monotonic()
    done = 0
    while time.monotonic() - begun < seconds:
        flying.popleft().get(timeout=60)
        done += 1
        flying.append(job.delay(body))
    print('{"per_second": %f}' % (done / (time.monotonic() - begun)), flush=True)
    os._exit(0)  # what is on its way is of no interest


if verb == "work":
    app.worker_main(["worker", "--concurrency=1", f"--hostname=worker{os.getpid()}@local", "--loglevel=ERROR"])
else:
    submit(float(numbers[0]), int(numbers[1]), int(numbers[2]))
