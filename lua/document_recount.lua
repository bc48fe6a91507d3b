-- Counts one more page of a namespace of documents. At the end of the walk its schema is
-- counted, and the counts of the namespace and of its tenant are corrected. A write to a
-- document that the walk has passed changes the walk's counts, so that the walk ends with the
-- stored counts. Counts that an interrupted write has added are left to the next walk.
-- KEYS[1] cs:doc:t:i:ns:records
-- KEYS[2] …:index
-- KEYS[3] cs:doc:t:i:usage
-- KEYS[4] cs:doc:t:usage
-- KEYS[5] cs:doc:t:i:ns:schema
-- KEYS[6] cs:doc:t:names
-- ARGV[1] namespace
-- ARGV[2] install
-- ARGV[3] now in ms
-- ARGV[4] how many records
-- Reply: {1 at the end of the walk, else 0, records and bytes that usage had too many,
--   entries of the index that had no record, …keys of documents that have expired}
-- Usage has too few bytes where an earlier release has set a schema, which it did not count. It did
-- not list the names of namespaces either.
-- include integer.lua
-- include append.lua
-- include byte_order.lua
-- include document_usage.lua
local records_key, index_key, usage_key, tenant_usage_key, schema_key, names_key = unpack(KEYS)
local namespace, install, now, limit = unpack(ARGV)
now = tonumber(now)
limit = tonumber(limit)

local fields = namespace_count_fields(namespace)
local counts = redis.call('HMGET', usage_key, unpack(fields))
local reached = counts[6]
local records = 0
local bytes = 0
if reached then
  records = tonumber(counts[3] or 0)
  bytes = tonumber(counts[4] or 0)
end
local keys = redis.call('ZRANGEBYLEX', index_key, reached and '(' .. reached or '-', '+', 'LIMIT', 0, limit)
local held = #keys > 0 and redis.call('HMGET', records_key, unpack(keys)) or {}
local missing = {}
local expired = {}
for i, key in ipairs(keys) do
  local record = held[i] or ''
  if record == '' then
    append(missing, key)
  else
    local expires_at_ms, size = string.match(record, '^{"revision":%d+,"created_at_ms":%d+,"expires_at_ms":(%d+),"bytes":(%d+),')
    records = records + 1
    bytes = bytes + tonumber(size or #record)
    if expires_at_ms and expires_at_ms ~= '0' and tonumber(expires_at_ms) <= now then
      append(expired, key)
    end
  end
end
if #missing > 0 then
  redis.call('HDEL', records_key, unpack(missing))
  redis.call('ZREM', index_key, unpack(missing))
end
if #keys == limit then
  redis.call('HSET', usage_key, namespace .. ':wr', integer(records), namespace .. ':wb', integer(bytes), namespace .. ':w', keys[limit])
  return {0, 0, 0, #missing, unpack(expired)}
end

local name = install .. '/' .. namespace
if not redis.call('ZSCORE', names_key, name) then
  redis.call('ZADD', names_key, 0, name)
end
bytes = bytes + redis.call('STRLEN', schema_key)
local drift_records = tonumber(counts[1] or 0) - records
local drift_bytes = tonumber(counts[2] or 0) - bytes
local tenant_counts = redis.call('HMGET', tenant_usage_key, unpack(tenant_count_fields))
local changes = tenant_changes(install, tenant_counts, -drift_records, -drift_bytes)
change_counts(tenant_usage_key, tenant_count_fields, tenant_counts, changes, 1)
if drift_records ~= 0 or drift_bytes ~= 0 then
  redis.call('HSET', usage_key, namespace .. ':r', integer(records), namespace .. ':b', integer(bytes))
end
if reached then
  redis.call('HDEL', usage_key, namespace .. ':wr', namespace .. ':wb', namespace .. ':w')
end
change_counts(tenant_usage_key, tenant_count_fields, tenant_counts, changes, -1)
return {1, drift_records, drift_bytes, #missing, unpack(expired)}
