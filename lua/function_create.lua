-- Creates a function, or revives a deleted one.
-- KEYS[1] cs:fn:t:ns:fn:meta
-- KEYS[2] cs:fn:t:ns:index
-- ARGV[1] the record, whole
-- ARGV[2] the function's name
-- Reply: 1 | CS_FUNCTION_EXISTS
-- The index comes first: an entry without its record is skipped by every
-- reader, a record without its entry would never be listed.
local held = redis.call('GET', KEYS[1])
if held and held ~= ARGV[1] then
  local deleted = cjson.decode(held).deleted_at_ms
  if not deleted or deleted == cjson.null then
    return redis.error_reply('CS_FUNCTION_EXISTS a function of that name exists')
  end
end
redis.call('ZADD', KEYS[2], 0, ARGV[2])
redis.call('SET', KEYS[1], ARGV[1])
return 1
