"""An example that sends the letters of the queue "letters" page by page. A retry
continues from the page at which the previous attempt stopped."""

import argparse

from sous_worker import Fatal, RetryAfter, Worker


def send(job):
    to, pages = job.payload["to"], job.payload.get("pages", 1)
    if "@" not in to:
        raise Fatal(f"{to} is no address")
    if to.endswith("@busy.example") and job.attempt == 1:
        raise RetryAfter(0.2, "the server is busy")
    for page in range(job.checkpoint or 0, pages):
        job.progress(page, pages, f"page {page + 1}")
        job.sleep(0.05)  # where the work would be
        job.keep(page + 1)
    return {"sent": to}


parser = argparse.ArgumentParser(description="Sends the letters of a queue. The key is read from SOUS_KEY.")
parser.add_argument("--url", default="http://127.0.0.1:8080")
parser.add_argument("--tenant", default="t_default")
parser.add_argument("--namespace", default="default")
parser.add_argument("--concurrency", type=int, default=10)
parser.add_argument("--lease", type=float, default=30, help="seconds")
args = parser.parse_args()
Worker(args.url, {"letters": send}, args.tenant, args.namespace, args.concurrency, args.lease).run()
