-- Points an alias at a version that exists.
-- KEYS[1] cs:fn:t:ns:fn:meta
-- KEYS[2] cs:fn:t:ns:fn:version_seq
-- KEYS[3] cs:fn:t:ns:fn:aliases
-- KEYS[4] cs:fn:t:ns:fn:alias:a
-- ARGV[1] the alias's record, whole
-- ARGV[2] the alias's name
-- ARGV[3] the version
-- ARGV[4] the version that the alias must have now: '' any, '0' the alias must not exist
-- Reply: 1 | CS_FUNCTION_NOT_FOUND | CS_VERSION_NOT_FOUND | CS_PRECONDITION_FAILED
local fn = redis.call('GET', KEYS[1])
local deleted = fn and cjson.decode(fn).deleted_at_ms
if not fn or (deleted and deleted ~= cjson.null) then
  return redis.error_reply('CS_FUNCTION_NOT_FOUND no such function')
end
if tonumber(ARGV[3]) > tonumber(redis.call('GET', KEYS[2]) or '0') then
  return redis.error_reply('CS_VERSION_NOT_FOUND no such version')
end
local held = redis.call('GET', KEYS[4])
if held == ARGV[1] then
  return 1
end
if ARGV[4] ~= '' then
  local version = held and cjson.decode(held).version or 0
  if version ~= tonumber(ARGV[4]) then
    return redis.error_reply('CS_PRECONDITION_FAILED the alias does not point at the expected version')
  end
end
if not held then
  redis.call('ZADD', KEYS[3], 0, ARGV[2])
end
redis.call('SET', KEYS[4], ARGV[1])
return 1
