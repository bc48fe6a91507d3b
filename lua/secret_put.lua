-- Creates or changes a secret, if it is as it was read.
-- KEYS[1] cs:secret:t:ns:name
-- KEYS[2] cs:secrets:t:ns, the index
-- KEYS[3] cs:secrets:t:ns:floor
-- ARGV[1] the record as it was read, '' where there was none
-- ARGV[2] the record, whole
-- ARGV[3] the secret's name
-- ARGV[4] the floor as it was read, '' where there was none: a new secret's
--         version is above it
-- ARGV[5] how many secrets the namespace may have
-- Reply: 1 it is so, now or by an earlier try of the same write
--        | CS_STORE_CONFLICT | CS_SECRET_LIMIT_CONFLICT
-- The index comes first: an entry without its record is skipped by every
-- reader, a record without its entry would be in no list.
local held = redis.call('GET', KEYS[1])
if held == ARGV[2] then
  return 1
end
if (held or '') ~= ARGV[1] then
  return redis.error_reply('CS_STORE_CONFLICT the secret changed meanwhile')
end
if not held then
  if (redis.call('GET', KEYS[3]) or '') ~= ARGV[4] then
    return redis.error_reply('CS_STORE_CONFLICT a secret was deleted meanwhile')
  end
  if not redis.call('ZSCORE', KEYS[2], ARGV[3]) and redis.call('ZCARD', KEYS[2]) >= tonumber(ARGV[5]) then
    return redis.error_reply('CS_SECRET_LIMIT_CONFLICT the namespace has as many secrets as it may')
  end
  redis.call('ZADD', KEYS[2], 0, ARGV[3])
end
redis.call('SET', KEYS[1], ARGV[2])
return 1
