-- Adds jobs to the dependents of the jobs that they wait for.
-- KEYS[1] to KEYS[n] cs:job:t:id:run of each job waited for
-- KEYS[n+1 to 2n] cs:job:t:id:dependents of each
-- KEYS[2n+1 to 3n] cs:job:t:id:spec of each; only with ARGV[2]
-- ARGV[1] n
-- ARGV[2] the namespace outside of which jobs count as missing, '' for none
-- ARGV[3…] ids of the waiting jobs
-- Reply: for each job waited for its run, '' if it does not exist (nothing is added then)
-- include append.lua
-- include run.lua
-- include spec.lua
local n = tonumber(ARGV[1])
local namespace = ARGV[2]

local reply = {}
local missing = false
local runs = redis.call('MGET', unpack(KEYS, 1, n))
for i = 1, n do
  reply[i] = runs[i] or ''
  if namespace ~= '' and spec_namespace(redis.call('GETRANGE', KEYS[2 * n + i], 0, 255)) ~= namespace then
    reply[i] = ''
  end
  missing = missing or reply[i] == ''
end
if missing then
  return reply
end
local new_runs = {} -- key, run
for i = 1, n do
  redis.call('SADD', KEYS[n + i], unpack(ARGV, 3))
  local state, attempt, epoch, at, settled, worker = parse_run(runs[i])
  append(new_runs, KEYS[i], format_run(state, attempt, epoch, at, settled, worker, '1'))
end
redis.call('MSET', unpack(new_runs))
return reply
