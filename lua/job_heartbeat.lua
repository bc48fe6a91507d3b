-- Extends the leases of active jobs of one queue, and stores the progress and the
-- checkpoints that their workers report.
-- KEYS[1] cs:queue:t:ns:q:active
-- KEYS[2 to 1+n] cs:job:t:id:run of each job
-- KEYS[2+n to 1+2n] cs:job:t:id:meta of each
-- ARGV[1] n
-- ARGV[2…] five for each job: id, epoch, when its lease ends in ms, progress or '',
--   checkpoint or ''
-- Reply: for each job 'ok' | 'gone' (no such job) | its run, if the epoch does not hold
--   its lease
-- include append.lua
-- include run.lua
local active_key = KEYS[1]
local n = tonumber(ARGV[1])

local reply = {}
local leases = {}   -- entries: score, id
local new_runs = {} -- key, run
local reports = {}  -- {key, field, value, …}
local runs = redis.call('MGET', unpack(KEYS, 2, 1 + n))
for i = 1, n do
  local first = 2 + 5 * (i - 1)
  local id, epoch, lease_end, progress, checkpoint = unpack(ARGV, first, first + 4)
  local state, attempt, held_epoch, _, settled, worker, follows = parse_run(runs[i])
  if not state then
    reply[i] = 'gone'
  elseif state ~= 'active' or held_epoch ~= epoch then
    reply[i] = runs[i]
  else
    reply[i] = 'ok'
    append(leases, lease_end, id)
    append(new_runs, KEYS[1 + i], format_run(state, attempt, epoch, lease_end, settled, worker, follows))
    local report = {KEYS[1 + n + i]}
    if progress ~= '' then
      append(report, 'progress', progress)
    end
    if checkpoint ~= '' then
      append(report, 'checkpoint', checkpoint)
    end
    if #report > 1 then
      append(reports, report)
    end
  end
end
if #leases == 0 then
  return reply
end
redis.call('ZADD', active_key, unpack(leases))
redis.call('MSET', unpack(new_runs))
for _, report in ipairs(reports) do
  redis.call('HSET', unpack(report))
end
return reply
