-- Adds jobs to the dependents of the jobs that they wait for.
-- KEYS[1] to KEYS[n] cs:job:t:id:run of each job waited for
-- KEYS[n+1 to 2n] cs:job:t:id:dependents of each
-- ARGV[1] n
-- ARGV[2…] ids of the waiting jobs
-- Reply: for each job waited for its run, '' if it does not exist (nothing is added then)
-- include append.lua
-- include run.lua
local n = tonumber(ARGV[1])

local reply = {}
local missing = false
local runs = redis.call('MGET', unpack(KEYS, 1, n))
for i = 1, n do
  reply[i] = runs[i] or ''
  missing = missing or reply[i] == ''
end
if missing then
  return reply
end
local new_runs = {} -- key, run
for i = 1, n do
  redis.call('SADD', KEYS[n + i], unpack(ARGV, 2))
  local state, attempt, epoch, at, settled, worker = parse_run(runs[i])
  append(new_runs, KEYS[i], format_run(state, attempt, epoch, at, settled, worker, '1'))
end
redis.call('MSET', unpack(new_runs))
return reply
