-- What the feed of the mirror keeps beside the rows.

-- The position in the log of events of each tenant.
CREATE TABLE positions (
    tenant   TEXT PRIMARY KEY,
    position TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- The progress of the walk, and whether the rows are complete.
CREATE TABLE notes (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
