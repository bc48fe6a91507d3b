-- Completes active jobs of one queue of which only the run has to change, each if its
-- run is as the caller knows it: every change of a job changes its run. job_ack.lua
-- completes the others.
-- KEYS[1] cs:queue:t:ns:q:active
-- KEYS[2] …:completed
-- KEYS[3] …:config
-- KEYS[4] cs:events:t
-- KEYS[5…] cs:job:t:id:run of each job
-- ARGV[1] now in ms
-- ARGV[2] ns/q
-- ARGV[3…] groups of jobs of one run: how many they are, their run under the lease,
--   their run when completed, the detail of their event; then their ids
-- Reply: {the positions, from 1, of the jobs that have another run}
-- include event_log.lua
local active_key, completed_key, config_key, events_key = unpack(KEYS, 1, 4)
local now, queue = unpack(ARGV, 1, 2)

local reply = {}
local ids = {}
local completed = {} -- entries: score, id
local new_runs = {}  -- key, run
local runs = redis.call('MGET', unpack(KEYS, 5))
local done = 0
local job = 0
local first = 3
while job < #runs do
  local size, known, new_run, detail = unpack(ARGV, first, first + 3)
  local last = first + 3 + tonumber(size)
  for argument = first + 4, last do
    job = job + 1
    if runs[job] == known then
      done = done + 1
      ids[done] = ARGV[argument]
      completed[2 * done - 1], completed[2 * done] = now, ARGV[argument]
      new_runs[2 * done - 1], new_runs[2 * done] = KEYS[4 + job], new_run
      note_event('job.completed', ARGV[argument], detail)
    else
      reply[#reply + 1] = job
    end
  end
  first = last + 1
end
if done > 0 then
  write_events(events_key, event_mode(config_key), queue, now)
  redis.call('ZADD', completed_key, unpack(completed))
  redis.call('MSET', unpack(new_runs))
  redis.call('ZREM', active_key, unpack(ids))
end
return reply
