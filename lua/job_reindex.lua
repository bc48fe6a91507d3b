-- Adds a job to the index of its state, and its queue to the list of queues, if the job's
-- run is as the caller read it and the job is not in that index. The index comes last:
-- what was interrupted before it is done again.
-- KEYS[1] cs:job:t:id:run
-- KEYS[2] the set of its state
-- KEYS[3] cs:queue:t:ns:q:cursor
-- KEYS[4] …:after
-- KEYS[5] …:expiry
-- KEYS[6] cs:queue:t:index
-- KEYS[7] cs:queue:t:ns:q:config
-- KEYS[8] cs:events:t
-- KEYS[9] cs:approvals:t
-- ARGV[1] id
-- ARGV[2] run as it was read
-- ARGV[3] ns/q
-- ARGV[4] its score in the set
-- ARGV[5] rank of its priority if the set is a pending one, else -1
-- ARGV[6] expire_at_ms or 0
-- ARGV[7] '1' if maintenance has to check whether its wait is over
-- ARGV[8] the detail of the event of its enqueue, '' unless that was interrupted
-- ARGV[9] now in ms
-- Reply: 'ok' | 'there' (it is in the index) | 'gone' | its run, if that is another
-- include cursor.lua
-- include run.lua
-- include event_log.lua
-- include approvals.lua
local run_key, set_key, cursor_key, after_key, expiry_key, queues_key, config_key, events_key, approvals_key = unpack(KEYS)
local id, read, queue, score, rank, expire_at, check_wait, detail, now = unpack(ARGV)

local run = redis.call('GET', run_key)
if run ~= read then
  return run or 'gone'
end
if redis.call('ZSCORE', set_key, id) then
  return 'there'
end
if detail ~= '' then
  note_event('job.enqueued', id, detail)
  if parse_run(run) == 'held' then
    note_event('approval.requested', id, detail)
  end
  write_events(events_key, event_mode(config_key), queue, now)
end
redis.call('SADD', queues_key, queue)
if expire_at ~= '0' then
  redis.call('ZADD', expiry_key, expire_at, id)
end
ask_approval(approvals_key, run, id)
if check_wait == '1' then
  redis.call('ZADD', after_key, score, id)
end
if tonumber(rank) >= 0 then
  score = at_least_cursor(score, redis.call('HGET', cursor_key, rank))
end
redis.call('ZADD', set_key, score, id)
return 'ok'
