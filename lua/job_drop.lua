-- Drops entries of a set whose jobs are not, or not any more, what it holds, each
-- if the job's run still is what the caller read: it may have come back since.
-- KEYS[1] the set  KEYS[2 to 1+n] cs:job:t:id:run of each job
-- ARGV[1] n  ARGV[2…] for each job: id, run that was read, '' where there was none
-- Reply: the ids of those that were dropped, by this call and no other
local n, gone = tonumber(ARGV[1]), {}
local runs = redis.call('MGET', unpack(KEYS, 2, 1 + n))
for i = 1, n do
  local id = ARGV[2 * i]
  if (runs[i] or '') == ARGV[1 + 2 * i] and redis.call('ZREM', KEYS[1], id) == 1 then
    gone[#gone + 1] = id
  end
end
return gone
