-- The ledger of a job has what the job has spent, and its iteration. Its text begins with its
-- version, which each change raises. It is written by one MSET with the run. The sums of a day are
-- written before, by one HSET with a mark of the job, which is the ledger with the usage but without
-- the end of an iteration: a call that finds a mark of a higher version than the ledger finds a
-- change that was interrupted between the two, and completes the ledger.
--
-- A call with a ledger has at the end of KEYS: the ledger, cs:job:t:id:meta, the sums of the day and
-- of the day before. At the end of ARGV: the version as it was read; the new ledger; the mark, or ''
-- without usage; a field of meta to write ('' none); its value; a field to remove ('' none); ms for
-- which sums are kept; how many rows a day has at most; the budgets, as ledger_budgets.lua says; then
-- nine for each row of the day: its field; the field in its place where the day is full; seven numbers
-- to add. The keys of budgets are behind those of the ledger.

-- ledger_version returns the version of a ledger or a mark, 0 for none.
local function ledger_version(text)
  return tonumber(string.match(text or '', '^%d+') or '0')
end

-- read_ledger returns the ledger part of a call, nil if it has none. state is 'new', 'written' for a
-- repeat, or 'stale' if the ledger or the budgets have changed since they were read.
local function read_ledger(id, argument)
  if not ARGV[argument] then
    return nil
  end
  local key = #KEYS - 3
  if ARGV[argument + 8] ~= '0' then
    key = key - (ARGV[argument + 10] == '' and 1 or 2)
  end
  local ledger = {first = argument, mark_field = 'w|' .. id}
  ledger.key, ledger.meta_key, ledger.day_key, ledger.before_key = unpack(KEYS, key, key + 3)
  ledger.budgets, ledger.rows = read_budgets(ledger, argument + 8, key + 4)
  local stored = redis.call('GET', ledger.key) or ''
  local version = ledger_version(stored)
  ledger.before_mark = redis.call('HGET', ledger.before_key, ledger.mark_field)
  for _, mark in ipairs({redis.call('HGET', ledger.day_key, ledger.mark_field) or '', ledger.before_mark or ''}) do
    if ledger_version(mark) > version then
      ledger.mark, version = mark, ledger_version(mark)
    end
  end
  ledger.state = 'new'
  if stored == ARGV[argument + 1] then
    ledger.state = 'written'
  elseif ledger.mark or version ~= tonumber(ARGV[argument]) or ledger.budgets.stale then
    ledger.state = 'stale'
  end
  return ledger
end

-- complete_ledger writes the ledger that an interrupted call has left in a mark.
local function complete_ledger(ledger)
  if ledger.mark then
    redis.call('SET', ledger.key, ledger.mark)
  end
end

-- write_before_run writes what a new ledger makes visible. The caller then writes the run and the
-- ledger by one MSET, and calls clean_ledger.
local function write_before_run(ledger, id)
  local mark, field, value, _, ttl, most = unpack(ARGV, ledger.first + 2, ledger.first + 7)
  if field ~= '' then
    redis.call('HSET', ledger.meta_key, field, value)
  end
  if mark ~= '' then
    add_rows(ledger, mark, ttl, most)
  end
  hold_by_budget(ledger.budgets, id)
end

-- clean_ledger removes marks, and the iteration that is no longer kept. ledger is false for none.
local function clean_ledger(ledger)
  if not ledger then
    return
  end
  if ARGV[ledger.first + 2] ~= '' then
    redis.call('HDEL', ledger.day_key, ledger.mark_field)
  end
  if ledger.before_mark then
    redis.call('HDEL', ledger.before_key, ledger.mark_field)
  end
  if ARGV[ledger.first + 5] ~= '' then
    redis.call('HDEL', ledger.meta_key, ARGV[ledger.first + 5])
  end
end
