-- Deletes jobs, each if its run is as the caller read it.
-- KEYS[1] the set of jobs that they are in
-- KEYS[2] cs:approvals:t
-- KEYS[3 to 2+7n] cs:job:t:id:run, :spec, :meta, :errors, :dependents, :ledger and :steps of each job
-- ARGV[1] n
-- ARGV[2…] two for each job: id, run as it was read
-- Reply: how many were deleted
local set_key, approvals_key = KEYS[1], KEYS[2]
local n = tonumber(ARGV[1])

local deleted = 0
for i = 1, n do
  local id, read = unpack(ARGV, 2 * i, 2 * i + 1)
  local first_key = 3 + 7 * (i - 1)
  local run_key, spec_key, meta_key, errors_key, dependents_key, ledger_key, steps_key = unpack(KEYS, first_key, first_key + 6)
  local run = redis.call('GET', run_key)
  if not run or run == read then
    redis.call('DEL', meta_key, errors_key, dependents_key, ledger_key, steps_key)
    redis.call('DEL', run_key, spec_key)
    redis.call('ZREM', set_key, id)
    redis.call('ZREM', approvals_key, id)
    deleted = deleted + 1
  end
end
return deleted
