-- Adds up the counts of one more install of a tenant. After the last one the tenant's
-- counts are corrected. Writers change the walk's counts with each install that it has
-- passed.
-- KEYS[1] cs:doc:t:usage
-- KEYS[2] cs:doc:t:installs
-- KEYS[3] cs:doc:t:i:usage      (KEYS[1] where there is no next install)
-- KEYS[4] cs:doc:t:i:namespaces (KEYS[2] where there is no next install)
-- ARGV[1] the next install, '' for none
-- ARGV[2…] its namespaces
-- Reply: {1 at the end of the walk, else 0, records and bytes that usage had too many}
--   | CS_STORE_CONFLICT the next install or its namespaces are others
-- include integer.lua
-- include append.lua
-- include byte_order.lua
-- include document_usage.lua
local usage_key, installs_key, install_usage_key, namespaces_key = unpack(KEYS)
local install = ARGV[1]

local counts = redis.call('HMGET', usage_key, unpack(tenant_count_fields))
local reached = counts[5]
local following = redis.call('ZRANGEBYLEX', installs_key, reached and '(' .. reached or '-', '+', 'LIMIT', 0, 1)
if (following[1] or '') ~= install then
  return redis.error_reply('CS_STORE_CONFLICT the next install is another one')
end
local records = 0
local bytes = 0
if reached then
  records = tonumber(counts[3] or 0)
  bytes = tonumber(counts[4] or 0)
end
if install ~= '' then
  if redis.call('SCARD', namespaces_key) ~= #ARGV - 1 then
    return redis.error_reply('CS_STORE_CONFLICT the namespaces of the install have changed')
  end
  for i = 2, #ARGV do
    local namespace = ARGV[i]
    if redis.call('SISMEMBER', namespaces_key, namespace) == 0 then
      return redis.error_reply('CS_STORE_CONFLICT the namespaces of the install have changed')
    end
    local stored = redis.call('HMGET', install_usage_key, namespace .. ':r', namespace .. ':b')
    records = records + tonumber(stored[1] or 0)
    bytes = bytes + tonumber(stored[2] or 0)
  end
  redis.call('HSET', usage_key, 'wr', integer(records), 'wb', integer(bytes), 'w', install)
  return {0, 0, 0}
end
local drift_records = tonumber(counts[1] or 0) - records
local drift_bytes = tonumber(counts[2] or 0) - bytes
if drift_records ~= 0 or drift_bytes ~= 0 then
  redis.call('HSET', usage_key, 'r', integer(records), 'b', integer(bytes))
end
if reached then
  redis.call('HDEL', usage_key, 'wr', 'wb', 'w')
end
return {1, drift_records, drift_bytes}
