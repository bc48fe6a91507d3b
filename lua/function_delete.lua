-- Replaces a function's record by its deleted form, if it is as the caller read it.
-- KEYS[1] cs:fn:t:ns:fn:meta
-- ARGV[1] the record as it was read
-- ARGV[2] the record with deleted_at_ms set
-- Reply: 1 | CS_STORE_CONFLICT
local record_key = KEYS[1]
local read, deleted = unpack(ARGV)

if redis.call('GET', record_key) ~= read then
  return redis.error_reply('CS_STORE_CONFLICT the function has changed since it was read')
end
redis.call('SET', record_key, deleted)
return 1
