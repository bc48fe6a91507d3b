-- Creates or changes a Cadence worker binding, if it is as the caller read it.
-- KEYS[1] cs:cadence:t:ns:worker:w:meta
-- KEYS[2] cs:cadence:t:ns:workers:index
-- ARGV[1] the record as it was read, '' for none
-- ARGV[2] the record, whole
-- ARGV[3] the binding's name
-- ARGV[4] how many bindings the namespace may have
-- Reply: 1 written, now or by an earlier try of the same write
--        | CS_STORE_CONFLICT | CS_WORKER_LIMIT_CONFLICT
-- The index comes first: readers skip an entry without a record, but would never start
-- a worker for a record without an entry.
local record_key, index_key = unpack(KEYS)
local read, record, name, limit = unpack(ARGV)

local held = redis.call('GET', record_key) or ''
if held == record then
  return 1
end
if held ~= read then
  return redis.error_reply('CS_STORE_CONFLICT the worker binding has changed since it was read')
end
if held == '' then
  if redis.call('SCARD', index_key) >= tonumber(limit) then
    return redis.error_reply('CS_WORKER_LIMIT_CONFLICT limit of ' .. limit .. ' worker bindings in the namespace reached')
  end
  redis.call('SADD', index_key, name)
end
redis.call('SET', record_key, record)
return 1
