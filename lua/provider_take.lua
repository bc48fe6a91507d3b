-- Takes a call's requests and tokens out of the limits a minute of a provider of models, all or none,
-- and leases more to the replica.
-- KEYS[1] cs:ai:t:limit:name
-- ARGV[1] now in ms
-- ARGV[2] how much a limit can save up, in thousandths of it
-- ARGV[3…] five for each limit: its name, the limit a minute, the amount to return first (a negative
--   one is taken in any case), the amount to take, the amount to lease beyond it
-- Reply: {0, the amounts leased} | {the wait in ms until the amounts can be taken}
-- A field holds 'left:time'. An amount above what can be saved up is taken when that is full, and
-- leaves a debt, of ten minutes at most. A call does not wait for a limit of which it needs nothing. The
-- time never goes back. A repeat of a lost take takes twice, which delays others.
-- include integer.lua
-- include append.lua
local limit_key = KEYS[1]
local keep_ms = 3600000
local now, share = tonumber(ARGV[1]), tonumber(ARGV[2])
local names = {}
for first = 3, #ARGV, 5 do
  append(names, ARGV[first])
end
local held = redis.call('HMGET', limit_key, unpack(names))
local lefts, times, wait = {}, {}, 0
for i in ipairs(names) do
  local first = 5 * i - 2
  local limit, back, need = tonumber(ARGV[first + 1]), tonumber(ARGV[first + 2]), tonumber(ARGV[first + 3])
  local most = math.max(1, limit * share / 1000)
  local left, at = string.match(held[i] or '', '^(%-?[%d.]+):(%d+)$')
  left, at = tonumber(left or most), tonumber(at or now)
  times[i] = math.max(at, now)
  lefts[i] = math.max(-10 * limit, math.min(most, left + limit * (times[i] - at) / 60000 + back))
  local lacks = math.min(need, most) - lefts[i]
  if need > 0 and lacks > 0 then
    wait = math.max(wait, math.ceil(lacks * 60000 / limit))
  end
end
local reply, changes = {wait}, {}
for i, name in ipairs(names) do
  local limit, need, more = tonumber(ARGV[5 * i - 1]), tonumber(ARGV[5 * i + 1]), tonumber(ARGV[5 * i + 2])
  if wait == 0 then
    more = math.floor(math.max(0, math.min(more, lefts[i] - need)))
    lefts[i] = math.max(-10 * limit, lefts[i] - need - more)
    append(reply, more)
  end
  append(changes, name, string.format('%.3f', lefts[i]) .. ':' .. integer(times[i]))
end
redis.call('HSET', limit_key, unpack(changes))
redis.call('PEXPIRE', limit_key, keep_ms)
return reply
