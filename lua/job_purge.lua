-- Deletes jobs, each if its run still equals the one that the caller knows.
-- KEYS[1] the set of jobs that they are in
-- KEYS[2 to 1+5n] cs:job:t:id:run, :spec, :meta, :errors and :dependents of each job
-- ARGV[1] n  ARGV[2…] for each job: id, run expected
-- Reply: how many were deleted
local deleted = 0
for i = 1, tonumber(ARGV[1]) do
  local id, at = ARGV[2 * i], 5 * i - 3
  local run = redis.call('GET', KEYS[0 + at])
  if not run or run == ARGV[2 * i + 1] then
    redis.call('DEL', KEYS[2 + at], KEYS[3 + at], KEYS[4 + at])
    redis.call('DEL', KEYS[0 + at], KEYS[1 + at])
    redis.call('ZREM', KEYS[1], id)
    deleted = deleted + 1
  end
end
return deleted
