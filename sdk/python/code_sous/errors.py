"""The errors of the server, and those by which a handler settles its job."""

from dataclasses import dataclass
from typing import Literal

AbortReason = Literal["cancelled", "lease lost", "stopped"]
"""Why a handler was aborted: the job was cancelled; it was leased to another worker, or deleted; the
worker stops, and the time for its handlers is over."""


@dataclass(frozen=True)
class FieldError:
    """A fault of one field of a request."""

    path: str
    message: str


class ApiError(Exception):
    """The server refused a request. Match on ``code``; the codes are listed in docs/errors.md."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        status: int = 0,
        retry_after: float = 0,
        fields: tuple[FieldError, ...] = (),
        request_id: str = "",
    ) -> None:
        super().__init__(f"{code}: {message}" if code else message)
        self.code = code
        """The code, such as CS_QUEUE_DRAINING_CONFLICT; empty for an answer that is not the server's."""
        self.message = message
        self.status = status
        """The HTTP status; 0 for an answer of the stream."""
        self.retry_after = retry_after
        """When the server admits a retry, in seconds; 0 if it does not know."""
        self.fields = fields
        self.request_id = request_id

    @property
    def denied(self) -> bool:
        """Whether the server refuses the key."""
        return self.code.startswith(("CS_AUTHN_", "CS_AUTHZ_"))

    @property
    def permanent(self) -> bool:
        """Whether repeats of the request fail too."""
        return self.denied or self.code.startswith("CS_VALIDATION_")


class UnreachableError(Exception):
    """The server did not answer. The request may have taken effect."""


class Fatal(Exception):
    """Fails the job without a retry: it is dead, with the reason ``fatal``."""


class RetryAfter(Exception):
    """Fails the attempt. The job is retried after ``delay`` seconds, at most 30 days, instead of its backoff."""

    def __init__(self, delay: float, message: str) -> None:
        super().__init__(message)
        self.delay = delay


class Snooze(Exception):
    """Retries the job after ``delay`` seconds, at most 30 days, without counting the attempt."""

    def __init__(self, delay: float) -> None:
        super().__init__(f"snoozed for {delay} s")
        self.delay = delay


FailureKind = Literal["rate_limit", "overloaded", "error"]
"""The kinds of failures of a provider of models."""


class ProviderError(Exception):
    """The provider of the job failed. The job is retried at another target of its routing, without
    counting the attempt. The provider asks to wait for ``retry_after`` seconds."""

    def __init__(self, kind: FailureKind, message: str, retry_after: float = 0) -> None:
        super().__init__(message)
        self.kind = kind
        self.retry_after = retry_after


class Aborted(Exception):
    """A handler must stop. Its result would be dropped, unless the reason is ``stopped``."""

    def __init__(self, reason: AbortReason) -> None:
        super().__init__(f"the handler was aborted: {reason}")
        self.reason = reason
