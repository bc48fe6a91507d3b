-- The set of a tenant's approvals has the jobs that are held, by the time since when, and those of which
-- an approval was decided, by the negative time of the decision. An entry is written before the run of a
-- job that becomes held, and changed or removed after that of a job that no longer is: an entry of a job
-- that is not held, which an interruption leaves, is dropped when it is read.

-- ask_approval adds a job that the new run holds.
local function ask_approval(approvals_key, new_run, id)
  local state, _, _, at = parse_run(new_run)
  if state == 'held' then
    redis.call('ZADD', approvals_key, at, id)
  end
end

-- end_approval moves a job that was held, and is not any more, to the decided ones at the time decided,
-- or removes it if that is false.
local function end_approval(approvals_key, run, new_run, id, decided)
  if parse_run(run) ~= 'held' or parse_run(new_run) == 'held' then
    return
  end
  if decided then
    redis.call('ZADD', approvals_key, '-' .. decided, id)
  else
    redis.call('ZREM', approvals_key, id)
  end
end
