-- Completes active jobs of one queue of which only the run has to change, each if its
-- run is as the caller knows it: every change of a job changes its run. job_ack.lua
-- completes the others.
-- KEYS[1] cs:queue:t:ns:q:active
-- KEYS[2] …:completed
-- KEYS[3…] cs:job:t:id:run of each job
-- ARGV[1] now in ms
-- ARGV[2…] groups of jobs of one run: how many they are, their run under the lease,
--   their run when completed; then their ids
-- Reply: {the positions, from 1, of the jobs that have another run}
local active_key, completed_key = unpack(KEYS, 1, 2)
local now = ARGV[1]

local reply = {}
local ids = {}
local completed = {} -- entries: score, id
local new_runs = {}  -- key, run
local runs = redis.call('MGET', unpack(KEYS, 3))
local done = 0
local job = 0
local first = 2
while job < #runs do
  local size, known, new_run = unpack(ARGV, first, first + 2)
  local last = first + 2 + tonumber(size)
  for argument = first + 3, last do
    job = job + 1
    if runs[job] == known then
      done = done + 1
      ids[done] = ARGV[argument]
      completed[2 * done - 1], completed[2 * done] = now, ARGV[argument]
      new_runs[2 * done - 1], new_runs[2 * done] = KEYS[2 + job], new_run
    else
      reply[#reply + 1] = job
    end
  end
  first = last + 1
end
if done > 0 then
  redis.call('ZADD', completed_key, unpack(completed))
  redis.call('MSET', unpack(new_runs))
  redis.call('ZREM', active_key, unpack(ids))
end
return reply
