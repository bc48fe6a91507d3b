-- Deletes a Cadence worker binding, if it is as the caller read it.
-- KEYS[1] cs:cadence:t:ns:worker:w:meta
-- KEYS[2] cs:cadence:t:ns:workers:index
-- KEYS[3] cs:cadence:t:ns:worker:w:status
-- ARGV[1] the record as it was read
-- ARGV[2] the binding's name
-- Reply: 1 | CS_WORKER_NOT_FOUND | CS_STORE_CONFLICT
-- Readers skip a name that an interrupted script leaves in the index; the next attempt
-- to delete the binding removes it.
local record_key, index_key, status_key = unpack(KEYS)
local read, name = unpack(ARGV)

local held = redis.call('GET', record_key)
if held and held ~= read then
  return redis.error_reply('CS_STORE_CONFLICT the worker binding has changed since it was read')
end
if held then
  redis.call('DEL', record_key)
end
redis.call('SREM', index_key, name)
redis.call('DEL', status_key)
if not held then
  return redis.error_reply('CS_WORKER_NOT_FOUND no such worker binding')
end
return 1
