-- Sets or removes the owner of a custom domain, if it is as the caller read it.
-- KEYS[1] cs:domain:owners
-- ARGV[1] the owner as it was read, '' for none
-- ARGV[2] the owner; '' removes it
-- ARGV[3] the domain
-- Reply: 1 written, now or by an earlier try of the same write | CS_STORE_CONFLICT
local key = KEYS[1]
local read, owner, domain = unpack(ARGV)

local held = redis.call('HGET', key, domain) or ''
if held == owner then
  return 1
end
if held ~= read then
  return redis.error_reply('CS_STORE_CONFLICT the domain has another owner than was read')
end
if owner == '' then
  redis.call('HDEL', key, domain)
else
  redis.call('HSET', key, domain, owner)
end
return 1
