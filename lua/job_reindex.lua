-- Enters a job in the index of its state, and its queue in the list of queues, if
-- the job still is what the caller read and is not in that index. The index comes
-- last: what was cut before it is done again.
-- KEYS[1] cs:job:t:id:run  KEYS[2] the set of its state  KEYS[3] cs:queue:t:ns:q:cursor
-- KEYS[4] …:after  KEYS[5] …:expiry  KEYS[6] cs:queue:t:index
-- ARGV[1] id  ARGV[2] run that was read  ARGV[3] ns/q  ARGV[4] its score in the set
-- ARGV[5] rank of its priority if the set is a pending one, else -1
-- ARGV[6] expire_at_ms or 0  ARGV[7] '1' if it is to be looked whether its wait is over
-- Reply: 'ok' | 'there' (it is in the index) | 'gone' | its run, where that is another
local run = redis.call('GET', KEYS[1])
if run ~= ARGV[2] then
  return run or 'gone'
end
if redis.call('ZSCORE', KEYS[2], ARGV[1]) then
  return 'there'
end
redis.call('SADD', KEYS[6], ARGV[3])
if ARGV[6] ~= '0' then redis.call('ZADD', KEYS[5], ARGV[6], ARGV[1]) end
if ARGV[7] == '1' then redis.call('ZADD', KEYS[4], ARGV[4], ARGV[1]) end
local score = ARGV[4]
if tonumber(ARGV[5]) >= 0 then
  local cursor = redis.call('HGET', KEYS[3], ARGV[5])
  score = cursor and tonumber(cursor) > tonumber(score) and cursor or score
end
redis.call('ZADD', KEYS[2], score, ARGV[1])
return 'ok'
