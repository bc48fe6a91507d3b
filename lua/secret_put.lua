-- Creates or changes a secret, if it is as the caller read it.
-- KEYS[1] cs:secret:t:ns:name
-- KEYS[2] cs:secrets:t:ns, the index
-- KEYS[3] cs:secrets:t:ns:floor
-- ARGV[1] the record as it was read, '' for none
-- ARGV[2] the record, whole
-- ARGV[3] the secret's name
-- ARGV[4] the floor as it was read, '' for none: a new secret's version is above it
-- ARGV[5] how many secrets the namespace may have
-- Reply: 1 written, now or by an earlier try of the same write
--        | CS_STORE_CONFLICT | CS_SECRET_LIMIT_CONFLICT
-- The index comes first: readers skip an entry without a record, but would never list a
-- record without an entry.
local record_key, index_key, floor_key = unpack(KEYS)
local read, record, name, read_floor, limit = unpack(ARGV)

local held = redis.call('GET', record_key) or ''
if held == record then
  return 1
end
if held ~= read then
  return redis.error_reply('CS_STORE_CONFLICT the secret has changed since it was read')
end
if held == '' then
  if (redis.call('GET', floor_key) or '') ~= read_floor then
    return redis.error_reply('CS_STORE_CONFLICT a secret was deleted meanwhile')
  end
  if not redis.call('ZSCORE', index_key, name) and redis.call('ZCARD', index_key) >= tonumber(limit) then
    return redis.error_reply('CS_SECRET_LIMIT_CONFLICT limit of ' .. limit .. ' secrets in the namespace reached')
  end
  redis.call('ZADD', index_key, 0, name)
end
redis.call('SET', record_key, record)
return 1
