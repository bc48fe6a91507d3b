-- Adds usage of models that no job has caused to the sums of a day.
-- KEYS[1] cs:spending:t:day
-- ARGV[1] the field of the replica's mark
-- ARGV[2] the mark of the call, other than that of the replica's previous call
-- ARGV[3] ms for which sums are kept
-- ARGV[4] how many rows a day has at most
-- ARGV[5…] nine for each row, as for a ledger: its field; the field in its place where the day is full;
--   seven numbers to add
-- Reply: 1 added | 0 added by an earlier try of the same call
-- One HSET writes the sums and the mark.
-- include integer.lua
-- include append.lua
-- include ledger_rows.lua
local day_key = KEYS[1]
local mark_field, mark, ttl, most = unpack(ARGV, 1, 4)
if redis.call('HGET', day_key, mark_field) == mark then
  return 0
end
add_rows({first = -3, day_key = day_key, mark_field = mark_field}, mark, ttl, most)
return 1
