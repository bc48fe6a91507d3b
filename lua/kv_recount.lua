-- Counts one more page of a namespace's cs.kv. At the end the counts of the namespace and of its
-- tenant are corrected. A write to a key that the recount has passed changes its counts too.
-- KEYS[1] cs:kvindex:t:ns
-- KEYS[2] cs:kvindex:t:ns:sizes
-- KEYS[3] cs:kvusage:t
-- ARGV[1] namespace
-- ARGV[2] how many keys
-- Reply: {1 at the end, else 0, keys and bytes that the counts had too many}
-- include integer.lua
-- include append.lua
-- include byte_order.lua
-- include kv_usage.lua
local index_key, sizes_key, usage_key = unpack(KEYS)
local namespace, limit = unpack(ARGV)
limit = tonumber(limit)

local counts = kv_counts(usage_key, namespace)
local reached = counts[5]
local keys, bytes = 0, 0
if reached then
  keys, bytes = tonumber(counts[6] or 0), tonumber(counts[7] or 0)
end
local page = redis.call('ZRANGEBYLEX', index_key, reached and '(' .. reached or '-', '+', 'LIMIT', 0, limit)
local held = #page > 0 and redis.call('HMGET', sizes_key, unpack(page)) or {}
for i = 1, #page do
  if held[i] then
    keys = keys + 1
    bytes = bytes + tonumber(held[i])
  end
end
if #page == limit then
  redis.call('HSET', usage_key, namespace .. ':w', page[limit], namespace .. ':wk', integer(keys), namespace .. ':wb', integer(bytes))
  return {0, 0, 0}
end
local extra_keys = tonumber(counts[3] or 0) - keys
local extra_bytes = tonumber(counts[4] or 0) - bytes
counts[5] = nil
if extra_keys ~= 0 or extra_bytes ~= 0 then
  redis.call('HSET', usage_key, unpack(kv_change(counts, namespace, -extra_keys, -extra_bytes, 0, 0)))
end
redis.call('HDEL', usage_key, namespace .. ':w', namespace .. ':wk', namespace .. ':wb')
return {1, extra_keys, extra_bytes}
