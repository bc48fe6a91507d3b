-- Records an attempt of a delivery, and removes the delivery or sets its next attempt, if it is as
-- the caller read it.
-- KEYS[1] cs:webhook:t:id:pending
-- KEYS[2] cs:webhook:t:id:due
-- KEYS[3] cs:webhook:t:id:log
-- KEYS[4] cs:webhook:t:id:state
-- ARGV[1] the member of the delivery
-- ARGV[2] the delivery as it was read
-- ARGV[3] the delivery after the attempt, '' if it ended
-- ARGV[4] when the next attempt is due, in ms since 1970
-- ARGV[5] the attempt in JSON
-- ARGV[6], ARGV[7], … a field of the state and its value, '' to remove it, for each
-- Reply: 1 recorded, now or by an earlier try that did not end it | 0 the delivery is another by now, or ended
-- A crash before the last write repeats the attempt.
local pending_key, due_key, log_key, state_key = unpack(KEYS)
local member, read, delivery, at, attempt = unpack(ARGV, 1, 5)

local held = redis.call('HGET', pending_key, member) or ''
if held ~= read or held == '' then
  return held == delivery and held ~= '' and 1 or 0
end
redis.call('XADD', log_key, '*', 'attempt', attempt)
for i = 6, #ARGV, 2 do
  if ARGV[i + 1] == '' then
    redis.call('HDEL', state_key, ARGV[i])
  else
    redis.call('HSET', state_key, ARGV[i], ARGV[i + 1])
  end
end
if delivery == '' then
  redis.call('HDEL', pending_key, member)
  redis.call('ZREM', due_key, member)
else
  redis.call('ZADD', due_key, at, member)
  redis.call('HSET', pending_key, member, delivery)
end
return 1
