-- Writes documents of one namespace, all or none: puts, deletes, checks and expiries.
-- KEYS[1] cs:doc:t:i:ns:records
-- KEYS[2] …:index
-- KEYS[3] …:expiry
-- KEYS[4] …:changes
-- KEYS[5] …:schema
-- KEYS[6] cs:doc:t:i:usage
-- KEYS[7] cs:doc:t:usage
-- KEYS[8] cs:doc:t:i:namespaces
-- KEYS[9] cs:doc:t:expiring
-- ARGV[1] namespace
-- ARGV[2] install
-- ARGV[3] now in ms
-- ARGV[4] digest of the schema that the values were validated against, '' for none
-- ARGV[5 to 7] how many changes the feed keeps: at most, at least, and for each document
-- ARGV[8 to 11] quotas, 0 for none: records and bytes of the namespace, then of the tenant
-- ARGV[12…] six for each step, whose keys differ: put | delete | check | expire; key; the
--   revision that it must have (0: no document, '' any); expires_at_ms; bytes; the
--   record's text from expires_at_ms on. The last three are of a put.
-- Reply: {'ok', for each step the head of its record, '' for none}
--   | {'items', index, code, …} | {'quota', scope, unit, limit, used}
--   | {'register'} the namespace is not registered | CS_STORE_CONFLICT the schema changed
-- Every record is in the index, and in expiry no later than it expires. One HSET decides
-- on all records: it empties those that are removed while it stores the others.
-- include integer.lua
-- include append.lua
-- include byte_order.lua
-- include document_record.lua
-- include document_usage.lua
-- include document_plan.lua
-- include document_commit.lua
local records_key, index_key, expiry_key, changes_key, schema_key = unpack(KEYS)
local usage_key, tenant_usage_key, namespaces_key, expiring_key = unpack(KEYS, 6)
local namespace, install, now_ms, schema_digest, feed_most, feed_least, feed_each = unpack(ARGV, 1, 7)
local quotas = {unpack(ARGV, 8, 11)}

local now = tonumber(now_ms)
local keys = {}
for first = 12, #ARGV, 6 do
  keys[#keys + 1] = ARGV[first + 1]
end
local held = redis.call('HMGET', records_key, unpack(keys))
local fields = namespace_count_fields(namespace)
local counts = redis.call('HMGET', usage_key, unpack(fields))
local tenant_counts = redis.call('HMGET', tenant_usage_key, unpack(tenant_count_fields))

local reply = {'ok'}
local failed = {'items'}
for i, key in ipairs(keys) do
  local first = 12 + 6 * (i - 1)
  local operation, _, expected, expires_at_ms, bytes, rest = unpack(ARGV, first, first + 5)
  local head, revision, created_at_ms, held_expires_at_ms, held_bytes = parse_head(held[i])
  local live = head and not expired(held_expires_at_ms, now)
  local current = live and revision or '0'
  reply[i + 1] = operation == 'check' and live and head or ''
  if expected ~= '' and expected ~= current then
    append(failed, i - 1, operation == 'delete' and current == '0' and 'NOT_FOUND' or 'REVISION_MISMATCH')
  elseif operation == 'put' then
    local next_revision = integer(tonumber(current) + 1)
    local record = format_record(next_revision, live and created_at_ms or now_ms, rest)
    reply[i + 1] = parse_head(record)
    plan_put(key, record, next_revision, expires_at_ms, held_expires_at_ms)
    count_change(key, head and 0 or 1, tonumber(bytes) - tonumber(held_bytes or 0), counts[6])
  elseif operation == 'delete' or operation == 'expire' and not live then
    plan_removal(key, revision, live and 'delete' or 'expire')
    count_change(key, head and -1 or 0, -tonumber(held_bytes or 0), counts[6])
  elseif operation == 'expire' then
    plan_expiry(key, held_expires_at_ms)
  end
end
if #failed > 1 then
  return failed
end
local exceeded = exceeded_quota(quotas, counts, tenant_counts, plan.added[1], plan.added[2])
if exceeded then
  return exceeded
end
if #plan.records > 0 then
  if (redis.call('GETRANGE', schema_key, 0, 63) or '') ~= schema_digest then
    return redis.error_reply('CS_STORE_CONFLICT the schema has changed since the values were validated')
  end
  if redis.call('SISMEMBER', namespaces_key, namespace) == 0 then
    return {'register'}
  end
end

local added_records, added_bytes, recounted_records, recounted_bytes = unpack(plan.added)
local changes = {added_records, added_bytes, recounted_records, recounted_bytes, #plan.feed}
local of_tenant = tenant_changes(install, tenant_counts, added_records, added_bytes)
change_counts(tenant_usage_key, tenant_count_fields, tenant_counts, of_tenant, 1)
change_counts(usage_key, fields, counts, changes, 1)
local kept = math.max(tonumber(feed_least), feed_each * (tonumber(counts[1] or 0) + added_records))
write_feed(changes_key, tonumber(counts[5] or 0), integer(math.min(tonumber(feed_most), kept)), now_ms)
write_entries(index_key, expiry_key, expiring_key, install .. '/' .. namespace)
write_records(records_key)
write_removals(records_key, index_key, expiry_key)
change_counts(usage_key, fields, counts, changes, -1)
change_counts(tenant_usage_key, tenant_count_fields, tenant_counts, of_tenant, -1)
return reply
