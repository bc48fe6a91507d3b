-- Deletes an alias.
-- KEYS[1] cs:fn:t:ns:fn:alias:a
-- KEYS[2] cs:fn:t:ns:fn:aliases
-- ARGV[1] the alias's name
-- ARGV[2] the version that the alias must have now: '' any
-- Reply: 1 | CS_ALIAS_NOT_FOUND | CS_PRECONDITION_FAILED
-- A name left in the index by a cut is skipped by readers, and goes with the
-- next attempt to delete it.
local held = redis.call('GET', KEYS[1])
if not held then
  redis.call('ZREM', KEYS[2], ARGV[1])
  return redis.error_reply('CS_ALIAS_NOT_FOUND no such alias')
end
if ARGV[2] ~= '' and cjson.decode(held).version ~= tonumber(ARGV[2]) then
  return redis.error_reply('CS_PRECONDITION_FAILED the alias does not point at the expected version')
end
redis.call('DEL', KEYS[1])
redis.call('ZREM', KEYS[2], ARGV[1])
return 1
