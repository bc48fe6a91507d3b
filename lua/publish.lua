-- Publishes a draft as the function's next version.
-- KEYS[1] cs:fn:t:ns:fn:meta
-- KEYS[2] cs:fn:t:ns:fn:version_seq
-- KEYS[3] cs:fn:t:ns:fn:draft:id
-- KEYS[4] cs:fn:t:ns:fn:versions
-- KEYS[5] cs:fn:t:ns:fn:ver:N:bundle
-- KEYS[6] cs:fn:t:ns:fn:ver:N:meta
-- KEYS[7] cs:events:t
-- KEYS[8] cs:fn:t:ns:fn:aliases      (with an alias only)
-- KEYS[9] cs:fn:t:ns:fn:alias:a      (with an alias only)
-- ARGV[1] version_seq as it was read (N - 1)
-- ARGV[2] N
-- ARGV[3] the draft's first bytes as they were read
-- ARGV[4] the bundle
-- ARGV[5] the version's record
-- ARGV[6] the draft's tombstone
-- ARGV[7] the tombstone's time-to-live in ms
-- ARGV[8] the event of the version
-- ARGV[9] the alias's name            (with an alias only)
-- ARGV[10] the alias's record         (with an alias only)
-- ARGV[11] the alias's event          (with an alias only)
-- Reply: 1 | CS_FUNCTION_NOT_FOUND | CS_STORE_CONFLICT
-- A version exists once version_seq has its number. Earlier writes are invisible; a publish
-- that is interrupted later is completed by publishing again.
-- include functions.lua
-- include changes.lua
-- include alias_change.lua
local function_key, sequence_key, draft_key, versions_key, bundle_key, version_key, events_key, aliases_key, alias_key = unpack(KEYS)
local read_sequence, version, draft_head, bundle, record, tombstone, tombstone_ttl = unpack(ARGV, 1, 7)
local event, alias, alias_record, alias_event = unpack(ARGV, 8)

if not function_exists(redis.call('GET', function_key)) then
  return redis.error_reply('CS_FUNCTION_NOT_FOUND no such function')
end
if (redis.call('GET', sequence_key) or '0') ~= read_sequence then
  return redis.error_reply('CS_STORE_CONFLICT another version was published meanwhile')
end
if (redis.call('GETRANGE', draft_key, 0, #draft_head - 1) or '') ~= draft_head then
  return redis.error_reply('CS_STORE_CONFLICT the draft has changed since it was read')
end
note_change(event)
if alias_key then
  note_alias(alias_event, redis.call('GET', alias_key), version)
end
write_changes(events_key)
redis.call('SET', bundle_key, bundle)
redis.call('SET', version_key, record)
redis.call('ZADD', versions_key, version, version)
redis.call('SET', sequence_key, version)
if alias_key then
  redis.call('ZADD', aliases_key, 0, alias)
  redis.call('SET', alias_key, alias_record)
end
redis.call('SET', draft_key, tombstone, 'PX', tombstone_ttl)
return 1
