-- Completes active jobs of one queue of which nothing but their run is to change, each
-- only where its run is still what the caller knows: whatever happens to a job changes
-- its run. job_ack.lua judges the others.
-- KEYS[1] cs:queue:t:ns:q:active  KEYS[2] …:completed
-- KEYS[3…] cs:job:t:id:run of each job
-- ARGV[1] now_ms  ARGV[2…] in groups of jobs of one run: how many they are, their run
--   under the lease, their run when completed; then their ids
-- Reply: {the places, from 1, of the jobs that have another run}
local n, reply, ended, ids, sets, done = #KEYS - 2, {}, {}, {}, {}, 0
local runs, at, i = redis.call('MGET', unpack(KEYS, 3)), 2, 0
while i < n do
  local size, known, completed = tonumber(ARGV[at]), ARGV[at + 1], ARGV[at + 2]
  for k = at + 3, at + 2 + size do
    i = i + 1
    if runs[i] == known then
      done = done + 1
      ids[done] = ARGV[k]
      ended[2 * done - 1], ended[2 * done] = ARGV[1], ARGV[k]
      sets[2 * done - 1], sets[2 * done] = KEYS[2 + i], completed
    else
      reply[#reply + 1] = i
    end
  end
  at = at + 3 + size
end
if done > 0 then
  redis.call('ZADD', KEYS[2], unpack(ended))
  redis.call('MSET', unpack(sets))
  redis.call('ZREM', KEYS[1], unpack(ids))
end
return reply
