-- Creates, changes or deletes a queue trigger, if it is as the caller read it.
-- KEYS[1] cs:trigger:t:ns:queues
-- ARGV[1] the record as it was read, '' for none
-- ARGV[2] the record, whole; '' deletes it
-- ARGV[3] the queue
-- ARGV[4] how many triggers the namespace may have
-- Reply: 1 written, now or by an earlier try of the same write
--        | CS_STORE_CONFLICT | CS_TRIGGER_LIMIT_CONFLICT
local key = KEYS[1]
local read, record, queue, limit = unpack(ARGV)

local held = redis.call('HGET', key, queue) or ''
if held == record then
  return 1
end
if held ~= read then
  return redis.error_reply('CS_STORE_CONFLICT the trigger has changed since it was read')
end
if record == '' then
  redis.call('HDEL', key, queue)
  return 1
end
if held == '' and redis.call('HLEN', key) >= tonumber(limit) then
  return redis.error_reply('CS_TRIGGER_LIMIT_CONFLICT limit of ' .. limit .. ' queue triggers in the namespace reached')
end
redis.call('HSET', key, queue, record)
return 1
