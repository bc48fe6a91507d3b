-- Points an alias at a version that exists.
-- KEYS[1] cs:fn:t:ns:fn:meta
-- KEYS[2] cs:fn:t:ns:fn:version_seq
-- KEYS[3] cs:fn:t:ns:fn:aliases
-- KEYS[4] cs:fn:t:ns:fn:alias:a
-- KEYS[5] cs:events:t
-- ARGV[1] the alias's record, whole
-- ARGV[2] the alias's name
-- ARGV[3] the version
-- ARGV[4] the version that the alias must have: '' for any, '0' if the alias must not exist
-- ARGV[5] its event
-- Reply: 1 | CS_FUNCTION_NOT_FOUND | CS_VERSION_NOT_FOUND | CS_PRECONDITION_FAILED
-- include functions.lua
-- include changes.lua
-- include alias_change.lua
local function_key, sequence_key, index_key, alias_key, events_key = unpack(KEYS)
local record, name, version, expected, event = unpack(ARGV)

if not function_exists(redis.call('GET', function_key)) then
  return redis.error_reply('CS_FUNCTION_NOT_FOUND no such function')
end
if tonumber(version) > tonumber(redis.call('GET', sequence_key) or '0') then
  return redis.error_reply('CS_VERSION_NOT_FOUND no such version')
end
local held = redis.call('GET', alias_key)
if held == record then
  return 1
end
if expected ~= '' and alias_version(held) ~= tonumber(expected) then
  return redis.error_reply('CS_PRECONDITION_FAILED the alias does not point at the expected version')
end
note_alias(event, held, version)
write_changes(events_key)
if not held then
  redis.call('ZADD', index_key, 0, name)
end
redis.call('SET', alias_key, record)
return 1
