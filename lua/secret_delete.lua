-- Deletes a secret, if it is as it was read.
-- KEYS[1] cs:secret:t:ns:name
-- KEYS[2] cs:secrets:t:ns, the index
-- KEYS[3] cs:secrets:t:ns:floor
-- ARGV[1] the record as it was read
-- ARGV[2] the secret's name
-- ARGV[3] its version: none after it may have it again
-- Reply: 1 | CS_SECRET_NOT_FOUND | CS_STORE_CONFLICT
-- The floor comes first: without it a new secret of the name could have a
-- version that the old one had. A name left in the index by a cut is skipped by
-- readers, and goes with the next attempt to delete it.
local held = redis.call('GET', KEYS[1])
if held and held ~= ARGV[1] then
  return redis.error_reply('CS_STORE_CONFLICT the secret changed meanwhile')
end
if held then
  if tonumber(redis.call('GET', KEYS[3]) or '0') < tonumber(ARGV[3]) then
    redis.call('SET', KEYS[3], ARGV[3])
  end
  redis.call('DEL', KEYS[1])
end
redis.call('ZREM', KEYS[2], ARGV[2])
if not held then
  return redis.error_reply('CS_SECRET_NOT_FOUND no such secret')
end
return 1
