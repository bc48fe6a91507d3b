-- Deletes a Cadence worker binding, if it is as it was read.
-- KEYS[1] cs:cadence:t:ns:worker:w:meta
-- KEYS[2] cs:cadence:t:ns:workers:index
-- KEYS[3] cs:cadence:t:ns:worker:w:status
-- ARGV[1] the record as it was read
-- ARGV[2] the binding's name
-- Reply: 1 | CS_WORKER_NOT_FOUND | CS_STORE_CONFLICT
-- A name left in the index by a cut is skipped by readers, and goes with the
-- next attempt to delete it.
local held = redis.call('GET', KEYS[1])
if held and held ~= ARGV[1] then
  return redis.error_reply('CS_STORE_CONFLICT the binding changed meanwhile')
end
if held then
  redis.call('DEL', KEYS[1])
end
redis.call('SREM', KEYS[2], ARGV[2])
redis.call('DEL', KEYS[3])
if not held then
  return redis.error_reply('CS_WORKER_NOT_FOUND no such worker binding')
end
return 1
