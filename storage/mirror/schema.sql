-- The schema of the mirror. Its version is schemaVersion: a file of another version is replaced.
-- Times are Unix milliseconds, 0 or NULL for none. doc is the answer of the API in JSON.
--
-- row is the time of creation (of activations: of the start) and 20 bits that distinguish rows of
-- one millisecond: ms << 20 | bits. So rows, every index and the words are in the order of
-- creation, and a page of the newest rows needs no sort. See RowOf.

CREATE TABLE jobs (
    row           INTEGER PRIMARY KEY,
    tenant        TEXT NOT NULL,
    id            TEXT NOT NULL,
    namespace     TEXT NOT NULL,
    queue         TEXT NOT NULL,
    state         TEXT NOT NULL,
    priority      INTEGER NOT NULL,
    attempt       INTEGER NOT NULL,
    worker_id     TEXT,
    host          TEXT,
    batch_id      TEXT,
    chain_id      TEXT,
    parent_id     TEXT,
    activation_id TEXT,
    function      TEXT,              -- that the job calls
    unique_key    TEXT,
    run           TEXT NOT NULL,     -- the stored run, by which the feed compares
    dead_reason   TEXT,
    error         TEXT,              -- the last one
    created_ms    INTEGER NOT NULL,
    started_ms    INTEGER,
    due_ms        INTEGER,
    ended_ms      INTEGER,
    since_ms      INTEGER NOT NULL,  -- in its state
    doc           BLOB NOT NULL,
    UNIQUE (tenant, id)
) STRICT;

-- Every index ends with row. Package search names them.
CREATE INDEX jobs_tenant    ON jobs (tenant);
CREATE INDEX jobs_namespace ON jobs (tenant, namespace, state);
CREATE INDEX jobs_queue     ON jobs (tenant, queue, state);
CREATE INDEX jobs_started   ON jobs (tenant, started_ms) WHERE started_ms > 0;
CREATE INDEX jobs_ended     ON jobs (tenant, ended_ms) WHERE ended_ms > 0;
CREATE INDEX jobs_due       ON jobs (tenant, due_ms) WHERE due_ms > 0;
CREATE INDEX jobs_duration  ON jobs (tenant, ended_ms - started_ms) WHERE ended_ms > 0 AND started_ms > 0;
CREATE INDEX jobs_failed    ON jobs (tenant) WHERE error IS NOT NULL;
CREATE INDEX jobs_worker    ON jobs (tenant, worker_id) WHERE worker_id IS NOT NULL;
CREATE INDEX jobs_batch     ON jobs (tenant, batch_id) WHERE batch_id IS NOT NULL;
CREATE INDEX jobs_chain     ON jobs (tenant, chain_id) WHERE chain_id IS NOT NULL;
CREATE INDEX jobs_parent    ON jobs (tenant, parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX jobs_function  ON jobs (tenant, function) WHERE function IS NOT NULL;
CREATE INDEX jobs_unique    ON jobs (tenant, unique_key) WHERE unique_key IS NOT NULL;

CREATE TABLE job_tags (
    row    INTEGER NOT NULL,         -- of jobs
    tenant TEXT NOT NULL,
    key    TEXT NOT NULL,
    value  TEXT NOT NULL,
    PRIMARY KEY (tenant, key, value, row)
) STRICT, WITHOUT ROWID;

CREATE TABLE job_errors (
    row     INTEGER NOT NULL,        -- of jobs
    attempt INTEGER NOT NULL,
    error   TEXT NOT NULL,
    at_ms   INTEGER NOT NULL,
    PRIMARY KEY (row, attempt, at_ms)
) STRICT, WITHOUT ROWID;

-- The words of jobs, by row. It keeps no copy of the texts. tenant has one word, TenantWord.
CREATE VIRTUAL TABLE job_words USING fts5(
    tenant, id, queue, payload, tags, error, result,
    content = '', contentless_delete = 1, tokenize = 'unicode61'
);

CREATE TABLE activations (
    row         INTEGER PRIMARY KEY,
    tenant      TEXT NOT NULL,
    id          TEXT NOT NULL,
    namespace   TEXT NOT NULL,
    function    TEXT NOT NULL,
    version     INTEGER NOT NULL,
    status      TEXT NOT NULL,
    trigger     TEXT NOT NULL,
    job_id      TEXT,
    request_id  TEXT,
    error_type  TEXT,
    error       TEXT,                -- its message
    start_ms    INTEGER NOT NULL,
    end_ms      INTEGER,
    duration_ms INTEGER NOT NULL,
    cpu_ms      REAL NOT NULL,
    memory_peak INTEGER NOT NULL,
    egress      INTEGER NOT NULL,
    doc         BLOB NOT NULL,
    UNIQUE (tenant, id)
) STRICT;

CREATE INDEX activations_tenant    ON activations (tenant);
CREATE INDEX activations_namespace ON activations (tenant, namespace, status);
CREATE INDEX activations_function  ON activations (tenant, function, status);
CREATE INDEX activations_ended     ON activations (tenant, end_ms) WHERE end_ms > 0;
CREATE INDEX activations_duration  ON activations (tenant, duration_ms);
CREATE INDEX activations_failed    ON activations (tenant, error_type) WHERE error_type IS NOT NULL;
CREATE INDEX activations_job       ON activations (tenant, job_id) WHERE job_id IS NOT NULL;

-- The words of activations, by row.
CREATE VIRTUAL TABLE activation_words USING fts5(
    tenant, id, function, error, result,
    content = '', contentless_delete = 1, tokenize = 'unicode61'
);

-- The words are stored in parts, of which eight of one size are merged at a time. Merges are a tenth of the work of writing rows.
INSERT INTO job_words (job_words, rank) VALUES ('automerge', 8);
INSERT INTO activation_words (activation_words, rank) VALUES ('automerge', 8);
