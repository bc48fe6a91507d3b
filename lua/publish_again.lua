-- Publishes a draft that equals the latest version: sets the alias and consumes the
-- draft, but creates no version.
-- KEYS[1] cs:fn:t:ns:fn:meta
-- KEYS[2] cs:fn:t:ns:fn:version_seq
-- KEYS[3] cs:fn:t:ns:fn:draft:id
-- KEYS[4] cs:events:t
-- KEYS[5] cs:fn:t:ns:fn:aliases      (with an alias only)
-- KEYS[6] cs:fn:t:ns:fn:alias:a      (with an alias only)
-- ARGV[1] version_seq as it was read
-- ARGV[2] the draft's first bytes as they were read
-- ARGV[3] the draft's tombstone
-- ARGV[4] the tombstone's time-to-live in ms
-- ARGV[5] the alias's name            (with an alias only)
-- ARGV[6] the alias's record          (with an alias only)
-- ARGV[7] the alias's event           (with an alias only)
-- Reply: 1 | CS_FUNCTION_NOT_FOUND | CS_STORE_CONFLICT
-- include functions.lua
-- include changes.lua
-- include alias_change.lua
local function_key, sequence_key, draft_key, events_key, aliases_key, alias_key = unpack(KEYS)
local read_sequence, draft_head, tombstone, tombstone_ttl, alias, alias_record, alias_event = unpack(ARGV)

if not function_exists(redis.call('GET', function_key)) then
  return redis.error_reply('CS_FUNCTION_NOT_FOUND no such function')
end
if redis.call('GET', sequence_key) ~= read_sequence then
  return redis.error_reply('CS_STORE_CONFLICT another version was published meanwhile')
end
if (redis.call('GETRANGE', draft_key, 0, #draft_head - 1) or '') ~= draft_head then
  return redis.error_reply('CS_STORE_CONFLICT the draft has changed since it was read')
end
if alias_key then
  note_alias(alias_event, redis.call('GET', alias_key), read_sequence)
  write_changes(events_key)
  redis.call('ZADD', aliases_key, 0, alias)
  redis.call('SET', alias_key, alias_record)
end
redis.call('SET', draft_key, tombstone, 'PX', tombstone_ttl)
return 1
