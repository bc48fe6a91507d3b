-- take_job reads the job of a tick from the arguments, and its keys from those that
-- follow the schedule's two. It returns nil if the tick creates none.
local function take_job(first_key)
  local id = take()
  if id == '' then
    return nil
  end
  local job = {id = id}
  job.inflight_score, job.queue = take(), take()
  job.spec, job.run = take(), take()
  job.score, job.rank = take(), take()
  job.expire_at = take()
  job.unique_ttl, job.ended_holder = take(), take()
  job.fired, job.enqueued = take(), take()
  job.run_key, job.spec_key, job.pending_key, job.waiting_key = unpack(KEYS, first_key + 2, first_key + 5)
  job.expiry_key, job.after_key, job.cursor_key = unpack(KEYS, first_key + 6, first_key + 8)
  job.config_key, job.unique_key, job.held_key, job.approvals_key = unpack(KEYS, first_key + 9, first_key + 12)
  return job
end

-- enter_job adds the entries of a job by its run; one in another state has none left to add.
local function enter_job(job, run)
  local state, _, _, at = parse_run(run)
  if state ~= 'pending' and state ~= 'waiting' and state ~= 'held' then
    return
  end
  if job.expire_at ~= '0' then
    redis.call('ZADD', job.expiry_key, job.expire_at, job.id)
  end
  if state == 'waiting' then
    redis.call('ZADD', job.after_key, at, job.id)
    redis.call('ZADD', job.waiting_key, 'NX', at, job.id)
  elseif state == 'held' then
    ask_approval(job.approvals_key, run, job.id)
    redis.call('ZADD', job.held_key, 'NX', at, job.id)
  else
    local score = at_least_cursor(job.score, redis.call('HGET', job.cursor_key, job.rank))
    redis.call('ZADD', job.pending_key, 'NX', score, job.id)
  end
end

-- create_job writes the job of a tick and returns its outcome, as the reply of
-- schedule_tick has it, and the id of the entry of its event, nil for none. A job that exists gets the entries that an interrupted tick did
-- not reach.
local function create_job(job, queues_key, inflight_key, events_key)
  local last_event
  local config = redis.call('HMGET', job.config_key, 'draining', 'events')
  if config[1] == '1' then
    return 'draining'
  end
  local unique = tonumber(job.unique_ttl) > 0
  local run = redis.call('GET', job.run_key)
  local holder = unique and redis.call('GET', job.unique_key)
  if holder and holder ~= job.id and holder ~= job.ended_holder then
    return 'held ' .. holder
  end
  -- In flight before it exists: readers ignore an entry without a job.
  if job.inflight_score ~= '' then
    redis.call('ZADD', inflight_key, job.inflight_score, job.id)
  end
  if not run then
    if config[2] ~= 'off' then
      note_change(job.fired)
      last_event = append_changes(events_key)
    end
    note_event('job.enqueued', job.id, job.enqueued)
    if parse_run(job.run) == 'held' then
      note_event('approval.requested', job.id, job.enqueued)
    end
    write_events(events_key, config[2], job.queue, select(4, parse_run(job.run)))
    if unique then
      redis.call('SET', job.unique_key, job.id, 'PX', job.unique_ttl)
    end
    redis.call('SADD', queues_key, job.queue)
    redis.call('MSET', job.spec_key, job.spec, job.run_key, job.run)
  end
  enter_job(job, run or job.run)
  return 'ok', last_event
end
