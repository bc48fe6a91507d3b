-- Moves jobs from one state to another, each if its run is as the caller read it. The
-- entry in the new set is written before the run, the one in the old set removed after
-- it. The last hundred errors of a job are kept: a job that is continued and fails in
-- turns would otherwise fill the store. A call that moves a single job may change its ledger, too.
-- KEYS[1] cs:queue:t:ns:q:cursor of the queue that jobs go to
-- KEYS[2] …:after of that queue
-- KEYS[3] …:config of that queue
-- KEYS[4] cs:events:t
-- KEYS[5 to 4+m] the sets that jobs leave and enter; the last is cs:approvals:t if one is that of held jobs
-- KEYS[5+m to 4+m+n] cs:job:t:id:run of each job
-- KEYS[5+m+n…] cs:job:t:id:meta, :spec, :errors and cs:uniq:t:ns:q:key of those that need them
-- ARGV[1] m
-- ARGV[2] n
-- ARGV[3] now in ms
-- ARGV[4] ns/q
-- ARGV[5…] twenty for each job. Keys are named by their number in KEYS, 0 for none:
--   id; the run as it was read; the new run; the set to leave; the set to enter; the score
--   there; the rank of its priority if that set is a pending one, else -1; a field to
--   write ('' none); its value; a checkpoint ('' unchanged); the meta key; the errors key;
--   the record of the attempt that ends, or '' (its text up to the first comma names the attempt); the unique
--   key to release; the new spec ('' unchanged); the spec key; '1' if what follows the job
--   is to be done; the types of its events, each after a blank; their detail; '1' if the move decides
--   an approval
-- With a ledger, both go on as ledger.lua says.
-- Reply: for each job 'ok' | 'after' (ok, and something follows) | 'gone' | its run, if
--   that is neither the one read nor the new one | 'stale', if its ledger or budgets are not those
--   read. With a ledger, the numbers of the budgets whose limits the call has reached
-- include append.lua
-- include cursor.lua
-- include integer.lua
-- include run.lua
-- include job_errors.lua
-- include event_log.lua
-- include changes.lua
-- include ledger_budgets.lua
-- include ledger_rows.lua
-- include ledger.lua
-- include move.lua
-- include approvals.lua
local cursor_key, after_key, config_key, events_key = unpack(KEYS, 1, 4)
local set_count, job_count, now, queue = unpack(ARGV, 1, 4)
local first_run = 5 + tonumber(set_count)
local n = tonumber(job_count)

local reply, cursors = {}
local runs = redis.call('MGET', unpack(KEYS, first_run, first_run + n - 1))
local ledger = read_ledger(ARGV[5], 5 + 20 * n)
if ledger and ledger.state == 'stale' and runs[1] == ARGV[6] then
  complete_ledger(ledger)
  return {'stale'}
end
local changes_ledger = ledger and ledger.state == 'new'
note_moves(runs, n)
write_events(events_key, event_mode(config_key), queue, now)
reply[n + 1] = changes_ledger and runs[1] == ARGV[6] and write_crossed(ledger.budgets, events_key) or nil
for i = 1, n do
  local first = 5 + 20 * (i - 1)
  local id, read, new_run, leave, enter, score, rank = unpack(ARGV, first, first + 6)
  local field, value, checkpoint, meta, errors = unpack(ARGV, first + 7, first + 11)
  local error_record, unique, new_spec, spec, follow = unpack(ARGV, first + 12, first + 16)
  local leave_key = KEYS[tonumber(leave)]
  local enter_key = KEYS[tonumber(enter)]
  local unique_key = KEYS[tonumber(unique)]
  local run_key = KEYS[first_run + i - 1]
  local run = runs[i]
  if not run then
    reply[i] = 'gone'
  elseif run ~= read and (run ~= new_run or made_by_another(KEYS[tonumber(spec)], new_spec)) then
    reply[i] = run
  else
    reply[i] = 'ok'
    if tonumber(rank) >= 0 then
      cursors = cursors or redis.call('HMGET', cursor_key, '0', '1', '2', '3')
      score = at_least_cursor(score, cursors[tonumber(rank) + 1])
    end
    if enter_key then
      redis.call('ZADD', enter_key, score, id)
    end
    ask_approval(KEYS[first_run - 1], new_run, id)
    -- A repeated move whose entry in after is gone has been followed up.
    if follow == '1' and followed(run) and (run ~= new_run or redis.call('ZSCORE', after_key, id)) then
      reply[i] = 'after'
      redis.call('ZADD', after_key, now, id)
    end
    add_error(KEYS[tonumber(errors)], error_record)
    set_field(KEYS[tonumber(meta)], field, value)
    set_field(KEYS[tonumber(meta)], checkpoint ~= '' and 'checkpoint' or '', checkpoint)
    if changes_ledger then
      write_before_run(ledger, id)
    end
    write_run(run_key, run, new_run, KEYS[tonumber(spec)], new_spec, changes_ledger and ledger)
    if leave_key and leave_key ~= enter_key then
      redis.call('ZREM', leave_key, id)
    end
    end_approval(KEYS[first_run - 1], read, new_run, id, ARGV[first + 19] == '1' and now)
    release_unique(unique_key, id)
    clean_ledger(changes_ledger and ledger)
  end
end
return reply
