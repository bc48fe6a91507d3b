-- Adds usage of models that no job has caused to the sums of a day, and to those of budgets.
-- KEYS[1] cs:spending:t:day
-- KEYS[2] cs:spending:t:day of the day before
-- KEYS[3] cs:events:t
-- KEYS[4] cs:budgets:t, with budgets
-- ARGV[1] the field of the replica's mark
-- ARGV[2] the mark of the call, other than that of the replica's previous call
-- ARGV[3] ms for which sums are kept
-- ARGV[4] how many rows a day has at most
-- ARGV[5…] the budgets, as ledger_budgets.lua says; then nine for each row, as for a ledger: its field;
--   the field in its place where the day is full; seven numbers to add
-- Reply: 'again' added by an earlier try of the same call | 'stale' if the budgets have changed since
--   they were read | the numbers of the budgets whose limits the call has reached
-- One HSET writes the sums and the mark.
-- include integer.lua
-- include append.lua
-- include changes.lua
-- include ledger_budgets.lua
-- include ledger_rows.lua
local day_key, before_key, events_key = unpack(KEYS, 1, 3)
local mark_field, mark, ttl, most = unpack(ARGV, 1, 4)
if redis.call('HGET', day_key, mark_field) == mark then
  return 'again'
end
local usage = {day_key = day_key, before_key = before_key, mark_field = mark_field}
usage.budgets, usage.rows = read_budgets(usage, 5, 4)
if usage.budgets.stale then
  return 'stale'
end
local reached = write_crossed(usage.budgets, events_key)
add_rows(usage, mark, ttl, most)
return reached
