-- Deletes jobs that have ended, each if its run still is what the caller read.
-- KEYS[1] the set of ended jobs that they are in
-- KEYS[2 to 1+3n] cs:job:t:id:meta, :errors and :dependents of each job
-- ARGV[1] n  ARGV[2…] for each job: id, run expected
-- Reply: how many were deleted
local deleted = 0
for i = 1, tonumber(ARGV[1]) do
  local id, run = ARGV[2 * i], redis.call('HGET', KEYS[3 * i - 1], 'run')
  if not run or run == ARGV[2 * i + 1] then
    redis.call('DEL', KEYS[3 * i], KEYS[3 * i + 1])
    redis.call('DEL', KEYS[3 * i - 1])
    redis.call('ZREM', KEYS[1], id)
    deleted = deleted + 1
  end
end
return deleted
