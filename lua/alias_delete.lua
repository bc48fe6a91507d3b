-- Deletes an alias.
-- KEYS[1] cs:fn:t:ns:fn:alias:a
-- KEYS[2] cs:fn:t:ns:fn:aliases
-- KEYS[3] cs:events:t
-- ARGV[1] the alias's name
-- ARGV[2] the version that the alias must have, '' for any
-- ARGV[3] its event
-- Reply: 1 | CS_ALIAS_NOT_FOUND | CS_PRECONDITION_FAILED
-- Readers skip a name that an interrupted script leaves in the index; the next attempt
-- to delete the alias removes it.
-- include changes.lua
-- include alias_change.lua
local alias_key, index_key, events_key = unpack(KEYS)
local name, expected, event = unpack(ARGV)

local held = redis.call('GET', alias_key)
if not held then
  redis.call('ZREM', index_key, name)
  return redis.error_reply('CS_ALIAS_NOT_FOUND no such alias')
end
local version = alias_version(held)
if expected ~= '' and version ~= tonumber(expected) then
  return redis.error_reply('CS_PRECONDITION_FAILED the alias does not point at the expected version')
end
note_change(event, '"version":' .. string.format('%.0f', version))
write_changes(events_key)
redis.call('DEL', alias_key)
redis.call('ZREM', index_key, name)
return 1
