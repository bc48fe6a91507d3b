-- Adds to the amounts that a tenant stores, all or none.
-- KEYS[1] cs:quota:t:use
-- ARGV[1] now in ms
-- ARGV[2…] three for each quota: its name, the amount to add, the limit or -1
-- Reply: {'ok', for each quota its use from now on} | {'quota', name, limit, use}
-- A negative amount is never refused, and takes no use below 0. One HSET makes all changes. The
-- field name:t is the time of the last addition.
-- include integer.lua
-- include append.lua
local use_key = KEYS[1]
local now_ms = ARGV[1]
local names = {}
for first = 2, #ARGV, 3 do
  append(names, ARGV[first])
end
local held = redis.call('HMGET', use_key, unpack(names))
local reply = {'ok'}
local changes = {}
for i, name in ipairs(names) do
  local amount, limit = tonumber(ARGV[3 * i]), ARGV[3 * i + 1]
  local used = math.max(0, tonumber(held[i] or 0))
  if amount > 0 and limit ~= '-1' and used + amount > tonumber(limit) then
    return {'quota', name, limit, integer(used)}
  end
  local after = integer(math.max(0, used + amount))
  append(reply, after)
  append(changes, name, after)
  if amount > 0 then
    append(changes, name .. ':t', now_ms)
  end
end
redis.call('HSET', use_key, unpack(changes))
return reply
