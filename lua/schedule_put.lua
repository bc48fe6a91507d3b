-- Creates a schedule, or changes one that still is what the caller has read.
-- KEYS[1] cs:schedule:t:ns:s:meta  KEYS[2] :state  KEYS[3] cs:schedule:t:ns:index
-- KEYS[4] cs:schedule:t:due  KEYS[5] cs:schedule:t:ns:s:inflight
-- ARGV[1] the record as it was read, '' for none
-- ARGV[2] the record, whole  ARGV[3] its revision  ARGV[4] the schedule's name
-- ARGV[5] ns/s  ARGV[6] its next tick in ms, 0 for none
-- ARGV[7] the revision at which the state's next tick is kept, '' for none
-- ARGV[8] of a new one: the first turn of its state  ARGV[9] how many schedules the
--   namespace may have
-- Reply: 1 | CS_STORE_CONFLICT | CS_SCHEDULE_LIMIT_CONFLICT
-- The record decides whether there is a schedule: what an earlier one of that name
-- left goes before it comes, its state follows. A state of another revision than the
-- record's tells the ticker that this was cut short.
local held = redis.call('GET', KEYS[1]) or ''
if held ~= ARGV[1] and held ~= ARGV[2] then
  return redis.error_reply('CS_STORE_CONFLICT the schedule is another by now')
end
if held == '' then
  if redis.call('SCARD', KEYS[3]) >= tonumber(ARGV[9]) and redis.call('SISMEMBER', KEYS[3], ARGV[4]) == 0 then
    return redis.error_reply('CS_SCHEDULE_LIMIT_CONFLICT the namespace has ' .. ARGV[9] .. ' schedules, as many as it may')
  end
  redis.call('DEL', KEYS[2], KEYS[5])
  redis.call('SADD', KEYS[3], ARGV[4])
end
if held ~= ARGV[2] then
  redis.call('SET', KEYS[1], ARGV[2])
end
local state = redis.call('HMGET', KEYS[2], 'rev', 'turn', 'next_tick_ms')
local next = ARGV[6]
if state[1] == ARGV[3] or state[1] and state[1] == ARGV[7] then
  next = state[3] or ARGV[6]
end
if state[1] ~= ARGV[3] then
  local turn = state[2] and string.format('%.0f', tonumber(state[2]) + 1) or ARGV[8]
  redis.call('HSET', KEYS[2], 'rev', ARGV[3], 'turn', turn, 'next_tick_ms', next)
end
if next == '0' then
  redis.call('ZREM', KEYS[4], ARGV[5])
else
  redis.call('ZADD', KEYS[4], next, ARGV[5])
end
return 1
