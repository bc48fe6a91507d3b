"""A worker for the queues of code-sous that uses only the standard library.

    worker = Worker("http://127.0.0.1:8080", {"emails": send})
    worker.run()   # until SIGTERM or SIGINT

A handler is called with a Job. Its return value is the result of the job. An
exception fails the job, which is retried after its backoff; the exceptions Fatal,
RetryAfter and Snooze change this.
"""

import http.client
import json
import os
import random
import signal
import socket
import sys
import threading
import time
import traceback
import urllib.parse
import uuid


class Fatal(Exception):
    """The job fails and is not retried."""


class RetryAfter(Exception):
    """The job fails and is retried after the given number of seconds."""

    def __init__(self, seconds, reason):
        super().__init__(reason)
        self.seconds = seconds


class Snooze(Exception):
    """The job is postponed by the given number of seconds; the attempt does not count."""

    def __init__(self, seconds):
        super().__init__(f"snoozed for {seconds} s")
        self.seconds = seconds


class Ended(Exception):
    """The handler must stop: "cancelled", "lease lost" or "stopped"."""


class Job:
    """A job that a handler works on."""

    def __init__(self, fetched):
        self.id = fetched["id"]
        self.epoch = fetched["lease_epoch"]  # names the lease in every call
        self.queue = fetched["queue"]
        self.payload = fetched["payload"]
        self.attempt = fetched["attempt"]
        self.checkpoint = fetched.get("checkpoint")  # stored by an earlier attempt
        self.why = None
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._unsent = {}
        self._kept = self._taken = None  # the last checkpoint passed to keep, and the last one the server accepted

    def progress(self, current, total=0, message=""):
        """Reports the progress of the job with the next heartbeat."""
        message = message.encode()[:1024].decode(errors="ignore")
        with self._lock:
            self._unsent["progress"] = {"current": int(current), "total": int(total), "message": message}

    def keep(self, checkpoint):
        """Stores a checkpoint from which a later attempt can continue, with the next
        heartbeat or before the job fails."""
        text = to_json(checkpoint)
        if len(text) > 256 * 1024:
            raise ValueError("a checkpoint may have 256 KiB")
        with self._lock:
            self._unsent["checkpoint"] = self._kept = json.loads(text)
            self.checkpoint = checkpoint

    def sleep(self, seconds):
        """Sleeps, and raises Ended as soon as the handler must stop."""
        if self._ended.wait(seconds):
            raise Ended(self.why)

    def check(self):
        """Raises Ended if the handler must stop. Call it regularly in long loops."""
        self.sleep(0)

    def end(self, why):
        self.why = self.why or why
        self._ended.set()

    def take_unsent(self):
        with self._lock:
            unsent, self._unsent = self._unsent, {}
        return unsent

    def put_back_unsent(self, unsent):
        with self._lock:
            self._unsent = {**unsent, **self._unsent}

    def sent(self, what):
        with self._lock:
            self._taken = what.get("checkpoint", self._taken)

    def unsaved(self):
        """Returns the fields to send before the job is released."""
        with self._lock:
            return {} if self._kept is self._taken else {"checkpoint": self._kept}


class Refused(Exception):
    """The server answered with an error."""


class Worker:
    def __init__(self, url, handlers, tenant="t_default", namespace="default", concurrency=10, lease=30.0, wait=20.0, stop_timeout=25.0):
        if not 1 <= concurrency <= 1000:  # one heartbeat renews up to 1,000 leases
            raise ValueError("concurrency must be from 1 to 1000")
        self.id = f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        self.namespace, self.handlers = namespace, handlers
        self.concurrency, self.lease, self.wait, self.stop_timeout = concurrency, lease, wait, stop_timeout
        self._url = urllib.parse.urlsplit(url)
        self._path = f"{self._url.path.rstrip('/')}/v1/tenants/{tenant}/jobs:"
        self._jobs = {}  # jobs in progress, by id and epoch
        self._room = threading.Condition()  # guards _jobs; notified when a job is settled
        self._stopping = threading.Event()
        self._done = threading.Event()
        self._fetching = None  # the connection that waits for jobs

    def run(self):
        """Runs until SIGTERM or SIGINT, then finishes the jobs in progress."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._stopping.set())
        fetcher = threading.Thread(target=self._fetch)
        beater = threading.Thread(target=self._beat)
        fetcher.start()
        beater.start()
        # Python runs a signal's handler in this thread, but the system may interrupt another
        # one. The timeout bounds how long this thread does not notice it.
        while not self._stopping.wait(0.5):
            pass
        # The connection is half closed: jobs that the server has already sent arrive,
        # and jobs that it claims from now on are released.
        self._hang_up(socket.SHUT_WR)
        fetcher.join(5)
        self._hang_up(socket.SHUT_RDWR)
        fetcher.join()
        if not self._settled_within(self.stop_timeout):
            with self._room:
                for job in self._jobs.values():
                    job.end("stopped")
            self._settled_within(2 * self.lease)
        self._done.set()
        beater.join()

    def _settled_within(self, seconds):
        with self._room:
            return self._room.wait_for(lambda: not self._jobs, seconds)

    def _fetch(self):
        pause = Backoff()
        while not self._stopping.is_set():
            with self._room:
                # Wake up every second, because the signal does not notify this condition.
                if not self._room.wait_for(lambda: len(self._jobs) < self.concurrency, 1):
                    continue
                free = self.concurrency - len(self._jobs)
            try:
                jobs = self._call("fetch", {
                    "namespace": self.namespace, "queues": list(self.handlers), "worker_id": self.id, "count": min(free, 1000),
                    "lease_ms": int(self.lease * 1000), "wait_ms": int(self.wait * 1000), "hostname": socket.gethostname(),
                }, self.wait + 15, fetching=True)
                pause.reset()
            except (OSError, http.client.HTTPException, ValueError, Refused) as error:
                if not self._stopping.is_set():
                    log(f"fetch: {error}")
                    pause.wait(self._stopping)
                continue
            for job in map(Job, jobs):
                with self._room:
                    lost = [other for (id, _), other in self._jobs.items() if id == job.id]
                    self._jobs[job.id, job.epoch] = job
                for other in lost:
                    other.end("lease lost")
                threading.Thread(target=self._work, args=(job,), daemon=True).start()

    def _hang_up(self, how):
        """Ends the fetch that is waiting."""
        sock = self._fetching and self._fetching.sock
        try:
            if sock:
                socket.socket.shutdown(sock, how)  # the shutdown of a TLS socket would discard its keys
        except OSError:
            pass  # the connection has just ended by itself

    def _work(self, job):
        try:
            if self._stopping.is_set():
                raise Ended("stopped")
            result = json.loads(to_json(self.handlers[job.queue](job)))
            if job.why not in ("cancelled", "lease lost"):  # otherwise the job no longer belongs to this worker
                self._settle("ack", "acks", job, {"result": result})
        except Ended as ended:
            log(f"job {job.id}: {ended}")
            if job.why in (None, "stopped"):
                self._failed(job, {"snooze_ms": 0})
        except Fatal as error:
            self._failed(job, {"error": str(error), "fatal": True})
        except RetryAfter as error:
            self._failed(job, {"error": str(error), "retry_after_ms": int(error.seconds * 1000)})
        except Snooze as error:
            self._failed(job, {"error": str(error), "snooze_ms": int(error.seconds * 1000)})
        except Exception as error:
            self._failed(job, {"error": f"{type(error).__name__}: {error}", "stack": traceback.format_exc()[-8000:]})
        finally:
            with self._room:
                del self._jobs[job.id, job.epoch]
                self._room.notify_all()

    def _failed(self, job, how):
        unsaved = job.unsaved()
        if unsaved:  # a later attempt needs the checkpoint
            self._settle("heartbeat", "jobs", job, {"lease_ms": int(self.lease * 1000), **unsaved})
        self._settle("fail", "fails", job, {"error": "", **how})

    def _settle(self, verb, field, job, how):
        """Repeats the call until it is answered, or until the lease must have expired.
        Repeating a call of the same lease succeeds."""
        body = {field: [{"id": job.id, "lease_epoch": job.epoch, **how}]}
        if verb == "heartbeat":
            body["worker_id"] = self.id
        pause, until = Backoff(), time.monotonic() + self.lease
        while True:
            try:
                for outcome in self._call(verb, body, self.lease):
                    if outcome["ok"]:
                        continue
                    log(f"{verb} of job {job.id}: {outcome['code']}: {outcome['message']}")
                    if verb == "ack" and outcome["code"] not in LOST:  # the result was refused
                        self._failed(job, {"error": outcome["message"]})
                return
            except (OSError, http.client.HTTPException, ValueError, Refused) as error:
                log(f"{verb} of job {job.id}: {error}")
                if time.monotonic() > until:
                    return
            pause.wait(self._done)

    def _beat(self):
        """Renews all leases in one call, well before they expire."""
        while not self._done.wait(self.lease / 3):
            with self._room:
                jobs = list(self._jobs.values())[:1000]
            if not jobs:
                continue
            unsent = [job.take_unsent() for job in jobs]
            beats = [{"id": j.id, "lease_epoch": j.epoch, "lease_ms": int(self.lease * 1000), **u} for j, u in zip(jobs, unsent)]
            try:
                outcomes = self._call("heartbeat", {"worker_id": self.id, "jobs": beats}, self.lease / 3)
            except (OSError, http.client.HTTPException, ValueError, Refused) as error:
                log(f"heartbeat: {error}")
                for job, what in zip(jobs, unsent):
                    job.put_back_unsent(what)
                continue
            for job, outcome, what in zip(jobs, outcomes, unsent):
                if outcome["ok"]:
                    job.sent(what)
                elif outcome.get("state") == "cancelled":
                    job.end("cancelled")
                elif outcome["code"] in LOST:
                    job.end("lease lost")
                else:
                    log(f"heartbeat of job {job.id}: {outcome['code']}: {outcome['message']}")

    def _call(self, verb, body, timeout, fetching=False):
        kind = http.client.HTTPSConnection if self._url.scheme == "https" else http.client.HTTPConnection
        connection = kind(self._url.netloc, timeout=timeout)
        headers = {"Content-Type": "application/json"}
        if os.environ.get("SOUS_KEY"):
            headers["Authorization"] = "Bearer " + os.environ["SOUS_KEY"]
        try:
            connection.connect()
            if fetching:
                self._fetching = connection
                if self._stopping.is_set():
                    return []
            connection.request("POST", self._path + verb, json.dumps(body), headers)
            response = connection.getresponse()
            text = response.read()
            answer = json.loads(text)
            if response.status not in (200, 409) or "jobs" not in answer:  # 409: no job could be settled
                raise Refused(f"{response.status} {answer.get('code')}: {answer.get('detail')}")
            return answer["jobs"]
        finally:
            connection.close()


# The error codes of a job that no longer belongs to this worker.
LOST = ("CS_JOB_LEASE_LOST", "CS_JOB_NOT_FOUND")


class Backoff:
    """A delay that grows, with jitter."""

    def __init__(self):
        self.reset()

    def reset(self):
        self._next = 0.1

    def wait(self, event):
        event.wait(self._next * random.uniform(0.5, 1))
        self._next = min(2 * self._next, 5)


def to_json(value):
    return json.dumps(value, allow_nan=False)


def log(text):
    print(text, file=sys.stderr, flush=True)
