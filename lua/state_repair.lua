-- Corrects the entries of records in their index by the fields that the records have
-- now: an interrupted write, or the end of a time-to-live, left others.
-- KEYS[1] the index
-- KEYS[2…] the records
-- ARGV[1] the index's field
-- ARGV[2] the field whose excepted values keep records out of the index
-- ARGV[3…] the excepted values
-- Reply: how many entries changed
-- include field_score.lua
local index_key = KEYS[1]
local index_field, except_field = unpack(ARGV, 1, 2)

-- wanted_score returns the score of a record, nil if it belongs out of the index.
local function wanted_score(record_key)
  local kind = redis.call('TYPE', record_key)
  if (type(kind) == 'table' and kind.ok or kind) ~= 'hash' then
    return nil
  end
  local value, except_value = unpack(redis.call('HMGET', record_key, index_field, except_field))
  for i = 3, #ARGV do
    if except_value == ARGV[i] then
      return nil
    end
  end
  return value and field_score(value)
end

local changed = 0
for i = 2, #KEYS do
  local record_key = KEYS[i]
  local wanted = wanted_score(record_key)
  local held = redis.call('ZSCORE', index_key, record_key)
  if wanted and (not held or number(wanted) ~= number(held)) then
    redis.call('ZADD', index_key, wanted, record_key)
    changed = changed + 1
  elseif held and not wanted then
    redis.call('ZREM', index_key, record_key)
    changed = changed + 1
  end
end
return changed
