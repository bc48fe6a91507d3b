-- Deletes a schedule with how it stands; its jobs stay.
-- KEYS[1] cs:schedule:t:ns:s:meta  KEYS[2] :state  KEYS[3] cs:schedule:t:ns:index
-- KEYS[4] cs:schedule:t:due  KEYS[5] cs:schedule:t:ns:s:inflight
-- ARGV[1] the record as it was read, '' where only what a cut left is to go
-- ARGV[2] the schedule's name  ARGV[3] ns/s
-- Reply: 1 | CS_STORE_CONFLICT
-- A schedule that is no longer due and still there is one whose deletion was cut
-- short: it is deleted again, or the ticker finds it.
local held = redis.call('GET', KEYS[1]) or ''
if held ~= '' and held ~= ARGV[1] then
  return redis.error_reply('CS_STORE_CONFLICT the schedule is another by now')
end
redis.call('ZREM', KEYS[4], ARGV[3])
redis.call('DEL', KEYS[1])
redis.call('DEL', KEYS[2], KEYS[5])
redis.call('SREM', KEYS[3], ARGV[2])
return 1
