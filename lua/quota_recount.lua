-- Corrects the amounts that a tenant stores after they were counted.
-- KEYS[1] cs:quota:t:use
-- ARGV[1] now in ms
-- ARGV[2…] four for each quota: its name, its use before the count, the counted amount, and how
--   long after an addition the use is not lowered, in ms
-- Reply: for each quota its use from now on
-- What was added during the count is added once more: it may have been counted or not. An addition
-- comes before its record, so for a while after one a count may be too low.
-- include integer.lua
-- include append.lua
local use_key = KEYS[1]
local now = tonumber(ARGV[1])
local fields = {}
for first = 2, #ARGV, 4 do
  append(fields, ARGV[first], ARGV[first] .. ':t')
end
local held = redis.call('HMGET', use_key, unpack(fields))
local reply = {}
local changes = {}
for i = 1, #fields / 2 do
  local name, used, added_at = fields[2 * i - 1], tonumber(held[2 * i - 1] or 0), tonumber(held[2 * i] or 0)
  local before, counted, grace = tonumber(ARGV[4 * i - 1]), tonumber(ARGV[4 * i]), tonumber(ARGV[4 * i + 1])
  local after = counted + math.max(0, used - before)
  if now - added_at < grace then
    after = math.max(after, used)
  end
  append(reply, integer(after))
  append(changes, name, integer(after))
end
redis.call('HSET', use_key, unpack(changes))
return reply
