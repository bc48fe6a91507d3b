-- The record of a document is JSON whose first fields have this order, so that
-- scripts read and write them without decoding the whole:
--   {"revision":…,"created_at_ms":…,"expires_at_ms":…,"bytes":…,"updated_at_ms":…,"metadata_bytes":…,
-- They are its head. expires_at_ms is 0 for a document that does not expire. Behind the head
-- follow "metadata":{…},"value":…}. An example, whose first line is its head:
--   {"revision":2,"created_at_ms":1000,"expires_at_ms":0,"bytes":16,"updated_at_ms":1060,"metadata_bytes":2,
--    "metadata":{},"value":{"n":1}}
-- A record may be '', which is a document that is being removed.

-- parse_head returns the head of a record, then its revision, created_at_ms,
-- expires_at_ms and bytes as strings. It returns nil if there is no record.
local function parse_head(record)
  return string.match(record or '', '^({"revision":(%d+),"created_at_ms":(%d+),"expires_at_ms":(%d+),"bytes":(%d+),"updated_at_ms":%d+,"metadata_bytes":%d+,)')
end

-- format_record returns a record; rest is its text from expires_at_ms on.
local function format_record(revision, created_at_ms, rest)
  return '{"revision":' .. revision .. ',"created_at_ms":' .. created_at_ms .. ',' .. rest
end

-- expired reports whether a document with that expires_at_ms has expired.
local function expired(expires_at_ms, now)
  return expires_at_ms ~= '0' and tonumber(expires_at_ms) <= now
end
