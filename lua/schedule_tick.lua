-- Advances schedules of one tenant, each with the job that its tick creates, if any. The
-- job is written before the state: a tick that was interrupted in between creates the
-- same job again, which changes nothing, since its id is derived from the tick.
-- KEYS[1] cs:schedule:t:due
-- KEYS[2] cs:queue:t:index
-- KEYS[3] cs:events:t
-- KEYS[4…] two for each schedule: cs:schedule:t:ns:s:state, :inflight. Eleven more for one
--   whose tick creates a job: cs:job:t:id:run and :spec, the pending set of its priority
--   (see job_enqueue.lua), cs:queue:t:ns:q:waiting, :expiry, :after, :cursor, :config,
--   cs:uniq:t:ns:q:key or :config again, cs:queue:t:ns:q:held, cs:approvals:t
-- ARGV[1] how many schedules
-- ARGV[2…] for each: ns/s; the turn that its state must have ('' for no state); the next
--   tick in ms or ''; how many words of new fields of the state, and these; how many jobs
--   in flight have ended, and their ids; the job's id or ''. For a job: its score among
--   those in flight or ''; ns/q; spec; run; score when pending; rank of its priority;
--   expire_at_ms or 0; time-to-live of its unique key in ms or 0; the id of a holder of
--   that key that has ended; the event of the tick; the detail of the event of the job
-- Reply: for each: 'ok' | 'moved' (its state has another turn) | 'draining' (the queue
--   accepts no jobs) | 'held ID' (of the unique key's holder)
-- include arguments.lua
-- include cursor.lua
-- include run.lua
-- include event_log.lua
-- include changes.lua
-- include approvals.lua
-- include schedule_job.lua
local due_key, queues_key, events_key = unpack(KEYS, 1, 3)
local count = tonumber(take())

local reply = {}
local first_key = 4
local last_event
for i = 1, count do
  local member, turn, next_tick = take(), take(), take()
  local fields = take_list(tonumber(take()))
  local ended_jobs = take_list(tonumber(take()))
  local job = take_job(first_key)
  local state_key, inflight_key = unpack(KEYS, first_key, first_key + 1)
  first_key = first_key + (job and 13 or 2)
  local outcome = 'ok'
  if (redis.call('HGET', state_key, 'turn') or '') ~= turn then
    outcome = 'moved'
  else
    if #ended_jobs > 0 then
      redis.call('ZREM', inflight_key, unpack(ended_jobs))
    end
    if job then
      local entry
      outcome, entry = create_job(job, queues_key, inflight_key, events_key)
      last_event = entry or last_event
    end
  end
  if outcome == 'ok' then
    if #fields > 0 then
      redis.call('HSET', state_key, unpack(fields))
    end
    if next_tick == '' then
      redis.call('ZREM', due_key, member)
    else
      redis.call('ZADD', due_key, next_tick, member)
    end
  end
  reply[i] = outcome
end
bound_changes(events_key, last_event)
return reply
