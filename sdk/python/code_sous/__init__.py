"""Workers for the job queues of code-sous, and a client that adds jobs.

    async with Client("http://127.0.0.1:8080") as client:
        worker = Worker(client, concurrency=20)

        @worker.handler("emails")
        async def send(job: Job) -> object:
            return {"sent": job.payload["to"]}

        await worker.run(signals=(signal.SIGTERM, signal.SIGINT))
"""

from .client import Client, EnqueuedJob, JobOptions
from .errors import Aborted, AbortReason, ApiError, FailureKind, Fatal, FieldError, ProviderError, RetryAfter, Snooze, UnreachableError
from .job import Job
from .source import Ack, Fail, FetchedJob, FetchRequest, Heartbeat, Outcome, Progress, Source
from .worker import Event, Handler, Worker

__all__ = [
    "Aborted", "AbortReason", "Ack", "ApiError", "Client", "EnqueuedJob", "Event", "Fail", "Fatal", "FetchRequest", "FetchedJob", "FieldError",
    "Handler", "Heartbeat", "Job", "JobOptions", "Outcome", "Progress", "ProviderError", "RetryAfter", "Snooze", "Source", "UnreachableError", "Worker",
]
