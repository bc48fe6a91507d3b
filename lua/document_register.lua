-- Enters a namespace of documents, and its install, in their lists. The namespace comes last: from
-- then on it counts, and the feed that an earlier one of its name left stays.
-- KEYS[1] cs:doc:t:i:namespaces  KEYS[2] cs:doc:t:installs  KEYS[3] cs:doc:t:i:ns:changes
-- ARGV[1] namespace  ARGV[2] install  ARGV[3] namespaces that an install may have
-- ARGV[4] installs that a tenant may have
-- Reply: 1 | 0 (the install has as many as it may) | -1 (the tenant has)
if redis.call('SISMEMBER', KEYS[1], ARGV[1]) == 1 then
  return 1
end
if redis.call('SCARD', KEYS[1]) >= tonumber(ARGV[3]) then
  return 0
end
if redis.call('ZCARD', KEYS[2]) >= tonumber(ARGV[4]) and not redis.call('ZSCORE', KEYS[2], ARGV[2]) then
  return -1
end
redis.call('ZADD', KEYS[2], 0, ARGV[2])
-- PERSIST fails on a key that expires at that moment; PEXPIRE replies 0.
local ttl = redis.call('PTTL', KEYS[3])
if ttl >= 0 and redis.call('PEXPIRE', KEYS[3], ttl + 60000) == 1 then
  redis.call('PERSIST', KEYS[3])
end
redis.call('SADD', KEYS[1], ARGV[1])
return 1
