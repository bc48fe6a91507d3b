-- Deletes an alias.
-- KEYS[1] cs:fn:t:ns:fn:alias:a
-- KEYS[2] cs:fn:t:ns:fn:aliases
-- ARGV[1] the alias's name
-- ARGV[2] the version that the alias must have, '' for any
-- Reply: 1 | CS_ALIAS_NOT_FOUND | CS_PRECONDITION_FAILED
-- Readers skip a name that an interrupted script leaves in the index; the next attempt
-- to delete the alias removes it.
local alias_key, index_key = unpack(KEYS)
local name, expected = unpack(ARGV)

local held = redis.call('GET', alias_key)
if not held then
  redis.call('ZREM', index_key, name)
  return redis.error_reply('CS_ALIAS_NOT_FOUND no such alias')
end
if expected ~= '' and cjson.decode(held).version ~= tonumber(expected) then
  return redis.error_reply('CS_PRECONDITION_FAILED the alias does not point at the expected version')
end
redis.call('DEL', alias_key)
redis.call('ZREM', index_key, name)
return 1
