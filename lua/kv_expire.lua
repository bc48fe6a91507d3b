-- Forgets keys of cs.kv whose values have expired. The store itself removed the values.
-- KEYS[1] cs:kvindex:t:ns
-- KEYS[2] cs:kvindex:t:ns:expiry
-- KEYS[3] cs:kvindex:t:ns:sizes
-- KEYS[4] cs:kvusage:t
-- ARGV[1] namespace
-- ARGV[2] now in ms
-- ARGV[3] how many keys
-- Reply: how many were forgotten
-- The entry in expiry is removed after the others, so that an interrupted run is repeated.
-- include integer.lua
-- include append.lua
-- include byte_order.lua
-- include kv_usage.lua
local index_key, expiry_key, sizes_key, usage_key = unpack(KEYS)
local namespace, now_ms, limit = unpack(ARGV)

local expired = redis.call('ZRANGEBYSCORE', expiry_key, '-inf', now_ms, 'LIMIT', 0, limit)
if #expired == 0 then
  return 0
end
local held = redis.call('HMGET', sizes_key, unpack(expired))
local counts = kv_counts(usage_key, namespace)
local keys, bytes, counted_keys, counted_bytes = 0, 0, 0, 0
for i, key in ipairs(expired) do
  if held[i] then
    local size = tonumber(held[i])
    keys = keys - 1
    bytes = bytes - size
    if kv_passed(counts, key) then
      counted_keys = counted_keys - 1
      counted_bytes = counted_bytes - size
    end
  end
end
redis.call('HDEL', sizes_key, unpack(expired))
redis.call('ZREM', index_key, unpack(expired))
redis.call('ZREM', expiry_key, unpack(expired))
if keys ~= 0 then
  redis.call('HSET', usage_key, unpack(kv_change(counts, namespace, keys, bytes, counted_keys, counted_bytes)))
end
return #expired
