-- Writes a record of fields, if it is as expected: sets and removes some, or replaces
-- all. A record's entry in its index is never missing, and never above the indexed
-- value: a scan repairs what an interrupted write leaves.
-- KEYS[1] the record
-- KEYS[2] the sorted set that is its index (only where it has one)
-- KEYS[3] a stream to which an event of the write is added (only with an index)
-- KEYS[4] cs:events:t, to which its change is added (only with an event)
-- ARGV[1] 'replace' | 'keep': what happens to fields that are not named
-- ARGV[2] its time-to-live in ms, 0 for none, '' to leave it as it is
-- ARGV[3] the index's field
-- ARGV[4] the field whose excepted values keep records out of the index
-- ARGV[5 to 9] how many: excepted values, expected pairs, expected absences, pairs set,
--   fields removed
-- ARGV[10…] these, in this order
-- ARGV[…] with KEYS[3]: its length, its time-to-live in ms, the time in ms, the event; with
--   KEYS[4]: the change
-- Reply: 1 written | 0 not as expected
-- include arguments.lua
-- include field_score.lua
-- include state_fields.lua
-- include stream_add.lua
-- include changes.lua
local record_key, index_key, stream_key, events_key = unpack(KEYS)
local replace = take() == 'replace'
local new_ttl, index_field, except_field = take(), take(), take()
local counts = take_list(5)
local excepted = take_list(tonumber(counts[1]))
local expected = take_list(2 * tonumber(counts[2]))
local absent = take_list(tonumber(counts[3]))
local set = take_list(2 * tonumber(counts[4]))
local removed = take_list(tonumber(counts[5]))
local event = stream_key and take_list(4)
local change = events_key and take()

-- A record could expire while this script runs, which takes less than a minute. One
-- that may is given a minute more first; if it has expired by then, or has no fields and
-- a time-to-live that KVRocks kept (PERSIST fails on both), it counts as missing.
local ttl = redis.call('PTTL', record_key)
if not has_fields(record_key, expected, absent) then
  return 0
end
if ttl >= 0 and (replace or ttl < 60000) and redis.call('PEXPIRE', record_key, ttl + 60000) == 0 then
  ttl = -2
  if not has_fields(record_key, expected, absent) then
    return 0
  end
end

-- Before the write: an interruption leaves an event without its write, which a repeat of the
-- call makes, and never a write without its event.
if event then
  local length, stream_ttl, at_ms, body = unpack(event)
  stream_add(stream_key, length, stream_ttl, at_ms, 'event', body)
end
if change then
  note_change(change)
  write_changes(events_key)
end
if replace then
  removed = other_fields(record_key, set, removed)
end
local score
local held_score
if index_key then
  local value = value_after(record_key, index_field, set, removed, replace)
  local except_value = #excepted > 0 and value_after(record_key, except_field, set, removed, replace)
  score = value and not contains(excepted, except_value) and field_score(value)
  held_score = redis.call('ZSCORE', index_key, record_key)
end
-- A score goes down before the fields change, and up after that.
if score and (not held_score or number(score) < number(held_score)) then
  redis.call('ZADD', index_key, score, record_key)
  held_score = score
end
if replace and ttl >= 0 then
  redis.call('PERSIST', record_key) -- else an interruption leaves the new fields with the old time-to-live
end
if #set > 0 then
  redis.call('HSET', record_key, unpack(set))
end
for i = 1, #removed, 256 do
  redis.call('HDEL', record_key, unpack(removed, i, math.min(i + 255, #removed)))
end
if new_ttl ~= '' and new_ttl ~= '0' then
  redis.call('PEXPIRE', record_key, new_ttl)
elseif not replace and ttl >= 0 and ttl < 60000 then
  redis.call('PEXPIRE', record_key, math.max(ttl, 1))
end
if score and number(score) ~= number(held_score) then
  redis.call('ZADD', index_key, score, record_key)
elseif held_score and not score then
  redis.call('ZREM', index_key, record_key)
end
return 1
