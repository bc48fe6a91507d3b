-- note_moves notes the events of those of n moves that are going to be made, by the runs that their
-- jobs have. The arguments are those of job_move.lua.
local function note_moves(runs, n)
  for i = 1, n do
    local first = 5 + 20 * (i - 1)
    local id, read, new_run = unpack(ARGV, first, first + 2)
    local events, detail = unpack(ARGV, first + 17, first + 18)
    if runs[i] == read and read ~= new_run then
      for event_type in string.gmatch(events, '%S+') do
        note_event(event_type, id, detail)
      end
    end
  end
end

-- release_unique deletes a unique key, nil for none, if the job holds it.
local function release_unique(unique_key, id)
  if unique_key and redis.call('GET', unique_key) == id then
    redis.call('DEL', unique_key)
  end
end

-- set_field sets a field of a hash, '' for none.
local function set_field(key, field, value)
  if field ~= '' then
    redis.call('HSET', key, field, value)
  end
end

-- made_by_another reports whether the new run of a move that writes a spec was written with another one:
-- two votes on an approval at the same time have the same new run.
local function made_by_another(spec_key, new_spec)
  return new_spec ~= '' and redis.call('GET', spec_key) ~= new_spec
end

-- write_run writes the new run of a job by one command with its spec and its ledger, if they change.
local function write_run(run_key, run, new_run, spec_key, new_spec, ledger)
  local records = {run_key, new_run}
  if ledger then
    append(records, ledger.key, ARGV[ledger.first + 1])
  end
  if new_spec ~= '' then
    append(records, spec_key, new_spec)
  end
  if #records > 2 or run ~= new_run then
    redis.call('MSET', unpack(records))
  end
end
