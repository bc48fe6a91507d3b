-- Writes a record of fields, if it is as expected: sets and removes some, or
-- replaces them all. Its index never holds it above the value that it has, nor lacks
-- it: what a cut leaves, a scan repairs.
-- KEYS[1] the record  KEYS[2] the sorted set that is its index (only where it has one)
-- ARGV[1] 'replace' | 'keep': what becomes of fields that are not named
-- ARGV[2] its time to live in ms, 0 for ever, '' to leave that as it is
-- ARGV[3] the index's field  ARGV[4] the field of which some values keep records out
-- ARGV[5 to 9] how many: such values, expected pairs, expected absences, pairs set, fields removed
-- ARGV[10…] those, in this order
-- Reply: 1 written | 0 not as expected
local at, replace = 9, ARGV[1] == 'replace'
local function take(n)
  local taken = {}
  for i = 1, n do taken[i] = ARGV[at + i] end
  at = at + n
  return taken
end
local excepted, expected, absent = take(tonumber(ARGV[5])), take(2 * tonumber(ARGV[6])), take(tonumber(ARGV[7]))
local set, removed = take(2 * tonumber(ARGV[8])), take(tonumber(ARGV[9]))
local function as_expected()
  for i = 1, #expected, 2 do
    if redis.call('HGET', KEYS[1], expected[i]) ~= expected[i + 1] then return false end
  end
  for _, field in ipairs(absent) do
    if redis.call('HGET', KEYS[1], field) then return false end
  end
  return true
end
-- The clock runs on: a record that may expire before the script ends, which takes less
-- than a minute, gets a minute more first. One that has expired by then is none, nor is
-- one without fields, of which KVRocks keeps the time-to-live; PERSIST fails on both.
local ttl = redis.call('PTTL', KEYS[1])
if not as_expected() then return 0 end
if ttl >= 0 and (replace or ttl < 60000) and redis.call('PEXPIRE', KEYS[1], ttl + 60000) == 0 then
  ttl = -2
  if not as_expected() then return 0 end
end
local after = {} -- what is written: a value, false where there will be none
for _, field in ipairs(removed) do after[field] = false end
for i = 1, #set, 2 do after[set[i]] = set[i + 1] end
if replace then
  for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
    if after[field] == nil then removed[#removed + 1] = field end
  end
end
local function value(field)
  if after[field] == nil and not replace then
    after[field] = redis.call('HGET', KEYS[1], field)
  end
  return after[field]
end
-- score is where a value stands: integers of 64 bits by their number, all else behind.
local function score(v)
  local sign, digits = string.match(v, '^(%-?)0*(%d+)$')
  local most = sign == '-' and '9223372036854775808' or '9223372036854775807'
  if not digits or #digits > #most or (#digits == #most and digits > most) then
    return '10000000000000000000'
  end
  return sign .. digits
end
local function number(text) return text + 0 end -- tonumber knows no 1e+19 on the embedded store
local place, held
if KEYS[2] then
  place = value(ARGV[3]) and score(value(ARGV[3]))
  for _, v in ipairs(excepted) do
    if value(ARGV[4]) == v then place = nil end
  end
  held = redis.call('ZSCORE', KEYS[2], KEYS[1])
end
if place and (not held or number(place) < number(held)) then
  redis.call('ZADD', KEYS[2], place, KEYS[1])
  held = place
end
if replace and ttl >= 0 then
  redis.call('PERSIST', KEYS[1]) -- a cut then leaves no record that expires as the old one did
end
if #set > 0 then
  redis.call('HSET', KEYS[1], unpack(set))
end
for i = 1, #removed, 256 do
  redis.call('HDEL', KEYS[1], unpack(removed, i, math.min(i + 255, #removed)))
end
if ARGV[2] ~= '' and ARGV[2] ~= '0' then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
elseif not replace and ttl >= 0 and ttl < 60000 then
  redis.call('PEXPIRE', KEYS[1], math.max(ttl, 1))
end
if place and number(place) ~= number(held) then
  redis.call('ZADD', KEYS[2], place, KEYS[1])
elseif held and not place then
  redis.call('ZREM', KEYS[2], KEYS[1])
end
return 1
