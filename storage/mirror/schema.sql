-- The schema of the mirror. Its version is schemaVersion: a file of another version is replaced.
-- Times are Unix milliseconds, 0 or NULL for none. doc is the answer of the API in JSON.

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

CREATE TABLE job_tags (
    row        INTEGER NOT NULL,     -- of jobs
    tenant     TEXT NOT NULL,
    key        TEXT NOT NULL,
    value      TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    PRIMARY KEY (tenant, key, value, created_ms, row)
) STRICT, WITHOUT ROWID;

CREATE TABLE job_errors (
    row     INTEGER NOT NULL,        -- of jobs
    attempt INTEGER NOT NULL,
    error   TEXT NOT NULL,
    at_ms   INTEGER NOT NULL,
    PRIMARY KEY (row, attempt, at_ms)
) STRICT, WITHOUT ROWID;

-- The words of jobs, by row. It keeps no copy of the texts.
CREATE VIRTUAL TABLE job_words USING fts5(
    id, queue, payload, tags, error, result,
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

-- The words of activations, by row.
CREATE VIRTUAL TABLE activation_words USING fts5(
    id, function, error, result,
    content = '', contentless_delete = 1, tokenize = 'unicode61'
);
