-- Indexes and counts a value of cs.kv that an earlier release wrote, or that an interrupted write
-- left with another size.
-- KEYS[1] cs:kv:t:ns:key
-- KEYS[2] cs:kvindex:t:ns
-- KEYS[3] cs:kvindex:t:ns:expiry
-- KEYS[4] cs:kvindex:t:ns:sizes
-- KEYS[5] cs:kvusage:t
-- ARGV[1] namespace
-- ARGV[2] key
-- ARGV[3] now in ms
-- Reply: 1, or 0 if the key is counted as it is, or has no value
-- include integer.lua
-- include append.lua
-- include byte_order.lua
-- include kv_usage.lua
local value_key, index_key, expiry_key, sizes_key, usage_key = unpack(KEYS)
local namespace, key, now_ms = unpack(ARGV)

if redis.call('EXISTS', value_key) == 0 then
  return 0
end
local held = redis.call('HGET', sizes_key, key)
local size = #key + redis.call('STRLEN', value_key)
if held and tonumber(held) == size then
  return 0
end
local added_keys = held and 0 or 1
local added_bytes = size - tonumber(held or 0)
local ttl_ms = redis.call('PTTL', value_key)
local counts = kv_counts(usage_key, namespace)
local passed = kv_passed(counts, key)
redis.call('HSET', usage_key, unpack(kv_change(counts, namespace, added_keys, added_bytes, passed and added_keys or 0, passed and added_bytes or 0)))
if ttl_ms > 0 then
  redis.call('ZADD', expiry_key, integer(tonumber(now_ms) + ttl_ms), key)
end
redis.call('ZADD', index_key, 0, key)
redis.call('HSET', sizes_key, key, integer(size))
return 1
