-- Creates, changes or deletes a webhook, if it is as the caller read it.
-- KEYS[1] cs:webhook:t:records
-- ARGV[1] the record as it was read, '' for none
-- ARGV[2] the record, whole; '' deletes it
-- ARGV[3] the name
-- ARGV[4] how many webhooks the tenant may have
-- Reply: 1 written, now or by an earlier try of the same write
--        | CS_STORE_CONFLICT | CS_WEBHOOK_LIMIT_CONFLICT
local key = KEYS[1]
local read, record, name, limit = unpack(ARGV)

local held = redis.call('HGET', key, name) or ''
if held == record then
  return 1
end
if held ~= read then
  return redis.error_reply('CS_STORE_CONFLICT the webhook has changed since it was read')
end
if record == '' then
  redis.call('HDEL', key, name)
  return 1
end
if held == '' and redis.call('HLEN', key) >= tonumber(limit) then
  return redis.error_reply('CS_WEBHOOK_LIMIT_CONFLICT limit of ' .. limit .. ' webhooks of the tenant reached')
end
redis.call('HSET', key, name, record)
return 1
