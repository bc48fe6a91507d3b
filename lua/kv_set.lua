-- Sets a value of cs.kv, unless the tenant would exceed its quota.
-- KEYS[1] cs:kv:t:ns:key
-- KEYS[2] cs:kvindex:t:ns
-- KEYS[3] cs:kvindex:t:ns:expiry
-- KEYS[4] cs:kvindex:t:ns:sizes
-- KEYS[5] cs:kvusage:t
-- ARGV[1] namespace
-- ARGV[2] key
-- ARGV[3] value
-- ARGV[4] time to live in ms, 0 for none
-- ARGV[5] now in ms
-- ARGV[6] limit of keys, -1 for none  ARGV[7] limit of bytes, -1 for none
-- Reply: {'ok', keys and bytes before, keys and bytes now} | {'quota', name, limit, use}
-- A write that adds nothing is never refused.
-- include integer.lua
-- include append.lua
-- include byte_order.lua
-- include kv_usage.lua
local value_key, index_key, expiry_key, sizes_key, usage_key = unpack(KEYS)
local namespace, key, value, ttl_ms, now_ms, key_limit, byte_limit = unpack(ARGV)

local size = #key + #value
local held = redis.call('HGET', sizes_key, key)
local added_keys = held and 0 or 1
local added_bytes = size - tonumber(held or 0)
local counts = kv_counts(usage_key, namespace)
local keys, bytes = tonumber(counts[1] or 0), tonumber(counts[2] or 0)
if added_keys > 0 and key_limit ~= '-1' and keys + added_keys > tonumber(key_limit) then
  return {'quota', 'kv_keys', key_limit, integer(keys)}
end
if added_bytes > 0 and byte_limit ~= '-1' and bytes + added_bytes > tonumber(byte_limit) then
  return {'quota', 'kv_bytes', byte_limit, integer(bytes)}
end

local changes
if added_keys ~= 0 or added_bytes ~= 0 then
  local passed = kv_passed(counts, key)
  changes = kv_change(counts, namespace, added_keys, added_bytes, passed and added_keys or 0, passed and added_bytes or 0)
end
if changes and added_bytes >= 0 then
  redis.call('HSET', usage_key, unpack(changes))
end
if added_keys > 0 then
  redis.call('ZADD', index_key, 0, key)
end
if changes then
  redis.call('HSET', sizes_key, key, integer(size))
end
if ttl_ms ~= '0' then
  redis.call('ZADD', expiry_key, integer(tonumber(now_ms) + tonumber(ttl_ms)), key)
  redis.call('SET', value_key, value, 'PX', ttl_ms)
else
  redis.call('SET', value_key, value)
  if held then
    redis.call('ZREM', expiry_key, key)
  end
end
if changes and added_bytes < 0 then
  redis.call('HSET', usage_key, unpack(changes))
end
return {'ok', integer(keys), integer(bytes), integer(keys + added_keys), integer(bytes + added_bytes)}
