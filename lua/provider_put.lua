-- Creates, changes or deletes a provider of models, if no provider of the tenant has changed since
-- the caller read them: routes name other providers, so all of them decide. Its circuit closes.
-- KEYS[1] cs:ai:t:providers
-- KEYS[2] cs:ai:t:circuits
-- KEYS[3] cs:ai:t:limit:name
-- ARGV[1] the number of changes as it was read, '' for none
-- ARGV[2] the provider's name
-- ARGV[3] the record, whole; '' deletes it
-- Reply: 1 written, now or by an earlier try of the same write | CS_STORE_CONFLICT
-- The field # has the number of changes. Raised alone, it only makes other writers read again.
local records_key, circuits_key, limit_key = unpack(KEYS)
local read, name, record = unpack(ARGV)

local held = redis.call('HGET', records_key, name) or ''
if held == record then
  return 1
end
local changes = redis.call('HGET', records_key, '#') or ''
if changes ~= read then
  return redis.error_reply('CS_STORE_CONFLICT the providers have changed since they were read')
end
local after = string.format('%.0f', tonumber(changes ~= '' and changes or '0') + 1)
redis.call('HDEL', circuits_key, name) -- the failures were those of other settings
if record ~= '' then
  redis.call('HSET', records_key, '#', after, name, record)
  return 1
end
redis.call('HSET', records_key, '#', after)
redis.call('DEL', limit_key)
redis.call('HDEL', records_key, name)
return 1
