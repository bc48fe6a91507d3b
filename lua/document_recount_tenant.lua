-- Adds up what one more install of a tenant uses, and behind the last sets what the tenant
-- uses right. Writers add to the walk's counts what they change behind it.
-- KEYS[1] cs:doc:t:usage  KEYS[2] cs:doc:t:installs  KEYS[3] cs:doc:t:i:usage  KEYS[4] cs:doc:t:i:namespaces
-- ARGV[1] the next install, '' none (then KEYS[3] and KEYS[4] are KEYS[1] and KEYS[2])  ARGV[2…] its namespaces
-- Reply: {1 at the end, records and bytes that were too many} | CS_STORE_CONFLICT there are others by now
local function int(n) return string.format('%.0f', n) end
local whole = redis.call('HMGET', KEYS[1], 'r', 'b', 'wr', 'wb', 'w')
local following = redis.call('ZRANGEBYLEX', KEYS[2], whole[5] and '(' .. whole[5] or '-', '+', 'LIMIT', 0, 1)
if (following[1] or '') ~= ARGV[1] then return redis.error_reply('CS_STORE_CONFLICT another install is the next') end
local records, bytes = whole[5] and tonumber(whole[3] or 0) or 0, whole[5] and tonumber(whole[4] or 0) or 0
if ARGV[1] ~= '' then
  if redis.call('SCARD', KEYS[4]) ~= #ARGV - 1 then return redis.error_reply('CS_STORE_CONFLICT it has other namespaces') end
  for i = 2, #ARGV do
    if redis.call('SISMEMBER', KEYS[4], ARGV[i]) == 0 then return redis.error_reply('CS_STORE_CONFLICT it has other namespaces') end
    local use = redis.call('HMGET', KEYS[3], ARGV[i] .. ':r', ARGV[i] .. ':b')
    records, bytes = records + tonumber(use[1] or 0), bytes + tonumber(use[2] or 0)
  end
  redis.call('HSET', KEYS[1], 'wr', int(records), 'wb', int(bytes), 'w', ARGV[1])
  return {0, 0, 0}
end
local drift = {tonumber(whole[1] or 0) - records, tonumber(whole[2] or 0) - bytes}
if drift[1] ~= 0 or drift[2] ~= 0 then redis.call('HSET', KEYS[1], 'r', int(records), 'b', int(bytes)) end
if whole[5] then redis.call('HDEL', KEYS[1], 'wr', 'wb', 'w') end
return {1, drift[1], drift[2]}
