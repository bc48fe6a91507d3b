-- Creates a function, or revives a deleted one, whose calls are forgotten.
-- KEYS[1] cs:fn:t:ns:fn:meta
-- KEYS[2] cs:fn:t:ns:index
-- KEYS[3] cs:fn:t:ns:fn:calls:D of today  KEYS[4] …:calls:D of yesterday
-- KEYS[5] cs:fn:t:ns:fn:failure
-- KEYS[6] cs:events:t
-- ARGV[1] the record, whole
-- ARGV[2] the function's name
-- ARGV[3] its event
-- Reply: 1 | CS_FUNCTION_EXISTS
-- The index comes first: readers skip an entry without a record, but would never list a
-- record without an entry.
-- include functions.lua
-- include changes.lua
local record_key, index_key, today_key, yesterday_key, failure_key, events_key = unpack(KEYS)
local record, name, event = unpack(ARGV)

local held = redis.call('GET', record_key)
if held ~= record and function_exists(held) then
  return redis.error_reply('CS_FUNCTION_EXISTS a function of that name exists')
end
if held ~= record then
  note_change(event)
  write_changes(events_key)
end
if held and held ~= record then
  redis.call('DEL', today_key, yesterday_key, failure_key)
end
redis.call('ZADD', index_key, 0, name)
redis.call('SET', record_key, record)
return 1
