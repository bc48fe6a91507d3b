-- Deletes a value of cs.kv, or forgets a key whose value is missing after a crash.
-- KEYS[1] cs:kv:t:ns:key
-- KEYS[2] cs:kvindex:t:ns
-- KEYS[3] cs:kvindex:t:ns:expiry
-- KEYS[4] cs:kvindex:t:ns:sizes
-- KEYS[5] cs:kvusage:t
-- ARGV[1] namespace
-- ARGV[2] key
-- ARGV[3] 1 to do nothing if there is a value
-- Reply: how many values were deleted
-- include integer.lua
-- include append.lua
-- include byte_order.lua
-- include kv_usage.lua
local value_key, index_key, expiry_key, sizes_key, usage_key = unpack(KEYS)
local namespace, key, only_missing = unpack(ARGV)

if only_missing == '1' and redis.call('EXISTS', value_key) == 1 then
  return 0
end
local deleted = redis.call('DEL', value_key)
local held = redis.call('HGET', sizes_key, key)
redis.call('HDEL', sizes_key, key)
redis.call('ZREM', expiry_key, key)
redis.call('ZREM', index_key, key)
if held then
  local counts = kv_counts(usage_key, namespace)
  local passed = kv_passed(counts, key)
  local size = tonumber(held)
  redis.call('HSET', usage_key, unpack(kv_change(counts, namespace, -1, -size, passed and -1 or 0, passed and -size or 0)))
end
return deleted
