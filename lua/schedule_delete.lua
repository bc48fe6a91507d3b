-- Deletes a schedule with its state. Its jobs stay.
-- KEYS[1] cs:schedule:t:ns:s:meta
-- KEYS[2] …:state
-- KEYS[3] cs:schedule:t:ns:index
-- KEYS[4] cs:schedule:t:due
-- KEYS[5] cs:schedule:t:ns:s:inflight
-- KEYS[6] cs:events:t
-- ARGV[1] the record as it was read, '' to remove only the rest of an interrupted script
-- ARGV[2] the schedule's name
-- ARGV[3] ns/s
-- ARGV[4] the event
-- Reply: 1 | CS_STORE_CONFLICT
-- A schedule that has a record and no entry among the due ones is one whose deletion
-- was interrupted: it is deleted again, or the ticker finds it.
-- include changes.lua
local record_key, state_key, index_key, due_key, inflight_key, events_key = unpack(KEYS)
local read, name, member, event = unpack(ARGV)

local held = redis.call('GET', record_key) or ''
if held ~= '' and held ~= read then
  return redis.error_reply('CS_STORE_CONFLICT the schedule has changed since it was read')
end
if held ~= '' then
  note_change(event)
  write_changes(events_key)
end
redis.call('ZREM', due_key, member)
redis.call('DEL', record_key)
redis.call('DEL', state_key, inflight_key)
redis.call('SREM', index_key, name)
return 1
