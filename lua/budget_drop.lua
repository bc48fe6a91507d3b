-- Removes jobs from those that a budget holds, each if its run is as the caller read it, or it is not
-- held: the script that holds a job changes both.
-- KEYS[1] cs:budgets:t:id:held
-- KEYS[2…] cs:job:t:id:run of each job
-- ARGV[1] the id of the first job
-- ARGV[2] its run as it was read, '' for none; then both of each further job
-- Reply: how many were removed
local held_key = KEYS[1]
local removed = 0
for i = 2, #KEYS do
  local id, read = unpack(ARGV, 2 * i - 3, 2 * i - 2)
  local run = redis.call('GET', KEYS[i]) or ''
  if run == read or string.sub(run, 1, 5) ~= 'held ' then
    removed = removed + redis.call('ZREM', held_key, id)
  end
end
return removed
