-- Creates or changes a schedule, if it is as the caller read it.
-- KEYS[1] cs:schedule:t:ns:s:meta
-- KEYS[2] …:state
-- KEYS[3] cs:schedule:t:ns:index
-- KEYS[4] cs:schedule:t:due
-- KEYS[5] cs:schedule:t:ns:s:inflight
-- KEYS[6] cs:events:t
-- ARGV[1] the record as it was read, '' for none
-- ARGV[2] the record, whole
-- ARGV[3] its revision
-- ARGV[4] the schedule's name
-- ARGV[5] ns/s
-- ARGV[6] its next tick in ms, 0 for none
-- ARGV[7] the revision at which the state's next tick is kept, '' for none
-- ARGV[8] the first turn of the state of a new schedule
-- ARGV[9] how many schedules the namespace may have
-- ARGV[10] the event
-- Reply: 1 | CS_STORE_CONFLICT | CS_SCHEDULE_LIMIT_CONFLICT
-- The record decides whether there is a schedule: the state of an earlier one of the
-- name is removed before, the new state is written after it. A state of another
-- revision than the record's shows the ticker that the script was interrupted.
-- include changes.lua
local record_key, state_key, index_key, due_key, inflight_key, events_key = unpack(KEYS)
local read, record, revision, name, member, next_tick, kept_revision, first_turn, limit, event = unpack(ARGV)

local held = redis.call('GET', record_key) or ''
if held ~= read and held ~= record then
  return redis.error_reply('CS_STORE_CONFLICT the schedule has changed since it was read')
end
if held == '' then
  if redis.call('SCARD', index_key) >= tonumber(limit) and redis.call('SISMEMBER', index_key, name) == 0 then
    return redis.error_reply('CS_SCHEDULE_LIMIT_CONFLICT limit of ' .. limit .. ' schedules in the namespace reached')
  end
end
if held ~= record then
  note_change(event)
  write_changes(events_key)
end
if held == '' then
  redis.call('DEL', state_key, inflight_key)
  redis.call('SADD', index_key, name)
end
if held ~= record then
  redis.call('SET', record_key, record)
end
local state_revision, turn, state_next = unpack(redis.call('HMGET', state_key, 'rev', 'turn', 'next_tick_ms'))
if state_revision == revision or state_revision and state_revision == kept_revision then
  next_tick = state_next or next_tick
end
if state_revision ~= revision then
  local next_turn = turn and string.format('%.0f', tonumber(turn) + 1) or first_turn
  redis.call('HSET', state_key, 'rev', revision, 'turn', next_turn, 'next_tick_ms', next_tick)
end
if next_tick == '0' then
  redis.call('ZREM', due_key, member)
else
  redis.call('ZADD', due_key, next_tick, member)
end
return 1
