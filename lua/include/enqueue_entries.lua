-- The entries of the jobs of an enqueue, by the number of their set in KEYS: the pending
-- jobs by the rank of their priority are 1 to 4, then come the other states.
local sets = {{}, {}, {}, {}, {}, {}, {}}
local set_numbers = {scheduled = 5, waiting = 6, held = 7}
local expiry_entries = {}
local after_entries = {}

-- add_entries adds the entries of a job by its run; a job in another state has none. A
-- score of 2^51 is the lowest of rank 1, and so on.
local function add_entries(id, run, score, cursors, expire_at)
  local state, _, _, at = parse_run(run)
  if state == 'pending' then
    local rank = math.floor(tonumber(score) / 2 ^ 51)
    append(sets[rank + 1], at_least_cursor(score, cursors[rank + 1]), id)
  elseif set_numbers[state] then
    append(sets[set_numbers[state]], at, id)
  else
    return
  end
  if state == 'waiting' then
    append(after_entries, at, id)
  end
  if expire_at ~= '0' then
    append(expiry_entries, expire_at, id)
  end
end

-- note_added notes the events of a new job.
local function note_added(id, run)
  note_event('job.enqueued', id, '{}')
  if parse_run(run) == 'held' then
    note_event('approval.requested', id, '{}')
  end
end

-- write_entries writes the entries; those in the sets of the states come last, since
-- they make the jobs visible. Held jobs are approvals, too (approvals.lua).
local function write_entries(expiry_key, after_key, approvals_key)
  if #expiry_entries > 0 then
    redis.call('ZADD', expiry_key, unpack(expiry_entries))
  end
  if #after_entries > 0 then
    redis.call('ZADD', after_key, unpack(after_entries))
  end
  if #sets[7] > 0 then
    redis.call('ZADD', approvals_key, 'NX', unpack(sets[7]))
  end
  for number = 1, 7 do
    if #sets[number] > 0 then
      redis.call('ZADD', KEYS[number], 'NX', unpack(sets[number]))
    end
  end
end
