-- Creates a function, or revives a deleted one.
-- KEYS[1] cs:fn:t:ns:fn:meta
-- KEYS[2] cs:fn:t:ns:index
-- ARGV[1] the record, whole
-- ARGV[2] the function's name
-- Reply: 1 | CS_FUNCTION_EXISTS
-- The index comes first: readers skip an entry without a record, but would never list a
-- record without an entry.
-- include functions.lua
local record_key, index_key = unpack(KEYS)
local record, name = unpack(ARGV)

local held = redis.call('GET', record_key)
if held ~= record and function_exists(held) then
  return redis.error_reply('CS_FUNCTION_EXISTS a function of that name exists')
end
redis.call('ZADD', index_key, 0, name)
redis.call('SET', record_key, record)
return 1
