-- Creates or changes a Cadence worker binding, if it is as it was read.
-- KEYS[1] cs:cadence:t:ns:worker:w:meta
-- KEYS[2] cs:cadence:t:ns:workers:index
-- ARGV[1] the record as it was read, '' where there was none
-- ARGV[2] the record, whole
-- ARGV[3] the binding's name
-- ARGV[4] how many bindings the namespace may have
-- Reply: 1 it is so, now or by an earlier try of the same write
--        | CS_STORE_CONFLICT | CS_WORKER_LIMIT_CONFLICT
-- The index comes first: an entry without its record is skipped by every
-- reader, a record without its entry would never be worked for.
local held = redis.call('GET', KEYS[1])
if held == ARGV[2] then
  return 1
end
if (held or '') ~= ARGV[1] then
  return redis.error_reply('CS_STORE_CONFLICT the binding changed meanwhile')
end
if not held then
  if redis.call('SCARD', KEYS[2]) >= tonumber(ARGV[4]) then
    return redis.error_reply('CS_WORKER_LIMIT_CONFLICT the namespace has as many worker bindings as it may')
  end
  redis.call('SADD', KEYS[2], ARGV[3])
end
redis.call('SET', KEYS[1], ARGV[2])
return 1
