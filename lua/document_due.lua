-- Sets when the first document of a namespace expires; never later than it does.
-- KEYS[1] cs:doc:t:i:ns:expiry
-- KEYS[2] cs:doc:t:expiring
-- ARGV[1] install/namespace
-- ARGV[2] the lowest score that is read
-- Reply: 1
local expiry_key, expiring_key = unpack(KEYS)
local member, from = unpack(ARGV)

local _, expires_at_ms = unpack(redis.call('ZRANGEBYSCORE', expiry_key, from, '+inf', 'WITHSCORES', 'LIMIT', 0, 1))
if expires_at_ms then
  redis.call('ZADD', expiring_key, expires_at_ms, member)
else
  redis.call('ZREM', expiring_key, member)
end
return 1
