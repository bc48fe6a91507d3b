-- Adds, changes or removes a tenant's claim to a custom domain, if it is as the caller read it.
-- KEYS[1] cs:domain:t:domain
-- KEYS[2] cs:domain:t:index
-- ARGV[1] the record as it was read, '' for none
-- ARGV[2] the record, whole; '' removes it
-- ARGV[3] the domain
-- Reply: 1 written, now or by an earlier try of the same write | CS_STORE_CONFLICT
-- The index has a domain before its record and after it: readers skip an entry without a record,
-- and a removal of a domain without a record removes the entry.
local record_key, index_key = unpack(KEYS)
local read, record, name = unpack(ARGV)

local held = redis.call('GET', record_key) or ''
if held ~= record and held ~= read then
  return redis.error_reply('CS_STORE_CONFLICT the domain has changed since it was read')
end
if record == '' then
  redis.call('DEL', record_key)
  redis.call('ZREM', index_key, name)
  return 1
end
redis.call('ZADD', index_key, 0, name)
redis.call('SET', record_key, record)
return 1
