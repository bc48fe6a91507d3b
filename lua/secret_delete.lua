-- Deletes a secret, if it is as the caller read it.
-- KEYS[1] cs:secret:t:ns:name
-- KEYS[2] cs:secrets:t:ns, the index
-- KEYS[3] cs:secrets:t:ns:floor
-- ARGV[1] the record as it was read
-- ARGV[2] the secret's name
-- ARGV[3] its version, which no later secret of the name may have
-- Reply: 1 | CS_SECRET_NOT_FOUND | CS_STORE_CONFLICT
-- The floor comes first: without it a new secret of the name could have a version that
-- the deleted one had. Readers skip a name that an interrupted script leaves in the
-- index; the next attempt to delete the secret removes it.
local record_key, index_key, floor_key = unpack(KEYS)
local read, name, version = unpack(ARGV)

local held = redis.call('GET', record_key)
if held and held ~= read then
  return redis.error_reply('CS_STORE_CONFLICT the secret has changed since it was read')
end
if held then
  if tonumber(redis.call('GET', floor_key) or '0') < tonumber(version) then
    redis.call('SET', floor_key, version)
  end
  redis.call('DEL', record_key)
end
redis.call('ZREM', index_key, name)
if not held then
  return redis.error_reply('CS_SECRET_NOT_FOUND no such secret')
end
return 1
