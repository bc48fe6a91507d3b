-- Creates, changes or deletes one of the tenant's records of a kind, such as a budget, if it is as the
-- caller read it. Each change raises the revision of all of them, with which reports of usage name the
-- budgets that they know.
-- KEYS[1] cs:budgets:t, cs:approvals:t:policies, :delegations or :links
-- ARGV[1] the record as it was read, '' for none
-- ARGV[2] the record, whole; '' deletes it
-- ARGV[3] the name
-- ARGV[4] how many records of the kind the tenant may have
-- ARGV[5] what one is called
-- ARGV[6] what several are called
-- Reply: 1 written, now or by an earlier try of the same write
--        | CS_STORE_CONFLICT | CS_CAPACITY_LIMIT
-- include integer.lua
local key = KEYS[1]
local read, record, name, limit, noun, plural = unpack(ARGV)

local held, revision = unpack(redis.call('HMGET', key, name, '#'))
held = held or ''
if held == record then
  return 1
end
if held ~= read then
  return redis.error_reply('CS_STORE_CONFLICT the ' .. noun .. ' has changed since it was read')
end
local next_revision = integer(tonumber(revision or '0') + 1)
if record == '' then
  redis.call('HSET', key, '#', next_revision)
  redis.call('HDEL', key, name)
  return 1
end
if held == '' and redis.call('HLEN', key) - (revision and 1 or 0) >= tonumber(limit) then
  return redis.error_reply('CS_CAPACITY_LIMIT limit of ' .. limit .. ' ' .. plural .. ' of the tenant reached: delete one first')
end
redis.call('HSET', key, '#', next_revision, name, record)
return 1
