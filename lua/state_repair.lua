-- Gives records the entries in their index that their fields, as they are now, ask
-- for: a write that was cut short, or the end of a time-to-live, left others.
-- KEYS[1] the index  KEYS[2…] the records
-- ARGV[1] the index's field  ARGV[2] the field of which some values keep records out
-- ARGV[3…] those values
-- Reply: how many entries changed
local function score(v) -- as in state_write.lua
  local sign, digits = string.match(v, '^(%-?)0*(%d+)$')
  local most = sign == '-' and '9223372036854775808' or '9223372036854775807'
  if not digits or #digits > #most or (#digits == #most and digits > most) then
    return '10000000000000000000'
  end
  return sign .. digits
end
local function number(text) return text + 0 end -- as there
local function place(record)
  local kind = redis.call('TYPE', record)
  if (type(kind) == 'table' and kind.ok or kind) ~= 'hash' then
    return nil
  end
  local held = redis.call('HMGET', record, ARGV[1], ARGV[2])
  for i = 3, #ARGV do
    if held[2] == ARGV[i] then return nil end
  end
  return held[1] and score(held[1])
end
local changed = 0
for i = 1, #KEYS - 1 do
  local record = KEYS[1 + i]
  local to, held = place(record), redis.call('ZSCORE', KEYS[1], record)
  if to and (not held or number(to) ~= number(held)) then
    redis.call('ZADD', KEYS[1], to, record)
    changed = changed + 1
  elseif held and not to then
    redis.call('ZREM', KEYS[1], record)
    changed = changed + 1
  end
end
return changed
