-- Removes entries of a set whose jobs do not belong in it, each if the job's run is as
-- the caller read it: the job may have come back since.
-- KEYS[1] the set
-- KEYS[2 to 1+n] cs:job:t:id:run of each job
-- ARGV[1] n
-- ARGV[2…] two for each job: id, run as it was read, '' for none
-- Reply: the ids of the entries that this call removed
local set_key = KEYS[1]
local n = tonumber(ARGV[1])

local removed = {}
local runs = redis.call('MGET', unpack(KEYS, 2, 1 + n))
for i = 1, n do
  local id, read = unpack(ARGV, 2 * i, 2 * i + 1)
  if (runs[i] or '') == read and redis.call('ZREM', set_key, id) == 1 then
    removed[#removed + 1] = id
  end
end
return removed
