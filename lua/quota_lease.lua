-- Leases shares of a tenant's rates to a replica, and takes back what it did not use.
-- KEYS[1] cs:quota:t:rates
-- ARGV[1] now in ms
-- ARGV[2…] five for each rate: its name, the limit of a period, the period in ms, the start of
--   the fixed period in ms or '' where the rate refills steadily, and the amount that is asked
--   for; a negative one is returned
-- Reply: for each rate the granted amount and the rest
-- A field holds 'left:time'. A steady rate refills up to the limit of one period; a fixed period
-- begins full. The time never goes back, so that a slow clock adds nothing twice.
-- include integer.lua
-- include append.lua
local rates_key = KEYS[1]
local keep_ms = 172800000
local now = tonumber(ARGV[1])
local names = {}
for first = 2, #ARGV, 5 do
  append(names, ARGV[first])
end
local held = redis.call('HMGET', rates_key, unpack(names))
local reply = {}
local changes = {}
for i, name in ipairs(names) do
  local first = 5 * i - 3
  local limit, period, ask = tonumber(ARGV[first + 1]), tonumber(ARGV[first + 2]), tonumber(ARGV[first + 4])
  local fixed = tonumber(ARGV[first + 3])
  local left, at = string.match(held[i] or '', '^(%-?[%d.]+):(%d+)$')
  left = tonumber(left or limit)
  at = tonumber(at or fixed or now)
  local time = math.max(at, fixed or now)
  if not fixed then
    left = left + limit * (time - at) / period
  elseif time > at then
    left = limit
  end
  left = math.min(left, limit)
  local granted = math.min(ask, math.max(0, left))
  left = math.min(left - granted, limit)
  append(reply, integer(math.floor(granted)), integer(math.floor(left)))
  if granted > 0 then
    left = left + granted - math.floor(granted)
  end
  append(changes, name, string.format('%.3f', left) .. ':' .. integer(time))
end
local kept = redis.call('PEXPIRE', rates_key, keep_ms)
redis.call('HSET', rates_key, unpack(changes))
if kept == 0 then
  redis.call('PEXPIRE', rates_key, keep_ms)
end
return reply
