-- Replaces a function's record by its deleted form, if it is as the caller read it.
-- KEYS[1] cs:fn:t:ns:fn:meta
-- KEYS[2] cs:events:t
-- ARGV[1] the record as it was read
-- ARGV[2] the record with deleted_at_ms set
-- ARGV[3] its event
-- Reply: 1 | CS_STORE_CONFLICT
-- include changes.lua
local record_key, events_key = unpack(KEYS)
local read, deleted, event = unpack(ARGV)

if redis.call('GET', record_key) ~= read then
  return redis.error_reply('CS_STORE_CONFLICT the function has changed since it was read')
end
note_change(event)
write_changes(events_key)
redis.call('SET', record_key, deleted)
return 1
