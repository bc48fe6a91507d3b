-- Adds deliveries of a webhook for events of the log, and moves the webhook's position behind them,
-- if that is where the caller began to read.
-- KEYS[1] cs:webhook:t:id:state
-- KEYS[2] cs:webhook:t:id:pending
-- KEYS[3] cs:webhook:t:id:due
-- ARGV[1] the position as it was read, '' for none
-- ARGV[2] the position behind the events
-- ARGV[3] when the deliveries are due, in ms since 1970
-- ARGV[4], ARGV[5], … the member and the delivery in JSON, for each
-- Reply: 1 added, now or by an earlier try | 0 the position is another by now
-- The position comes last: a crash before it repeats the deliveries, and loses none.
local state_key, pending_key, due_key = unpack(KEYS)
local read, position, at = ARGV[1], ARGV[2], ARGV[3]

local held = redis.call('HGET', state_key, 'position') or ''
if held ~= read then
  return held == position and 1 or 0
end
for i = 4, #ARGV, 2 do
  if not redis.call('HGET', pending_key, ARGV[i]) then
    redis.call('HSET', pending_key, ARGV[i], ARGV[i + 1])
  end
  redis.call('ZADD', due_key, 'NX', at, ARGV[i])
end
redis.call('HSET', state_key, 'position', position)
return 1
