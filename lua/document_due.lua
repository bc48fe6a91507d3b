-- Says of a namespace of documents when the soonest of them expires: never too late.
-- KEYS[1] cs:doc:t:i:ns:expiry  KEYS[2] cs:doc:t:expiring
-- ARGV[1] install/namespace  ARGV[2] from which score the first is read
-- Reply: 1
local first = redis.call('ZRANGEBYSCORE', KEYS[1], ARGV[2], '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
if first[2] then
  redis.call('ZADD', KEYS[2], first[2], ARGV[1])
else
  redis.call('ZREM', KEYS[2], ARGV[1])
end
return 1
