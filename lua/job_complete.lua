-- Completes active jobs of one queue of which nothing but their run is to change, each
-- only where its run is still what the caller knows: whatever happens to a job changes
-- its run. job_ack.lua judges the others.
-- KEYS[1] cs:queue:t:ns:q:active  KEYS[2] …:completed
-- KEYS[3…] cs:job:t:id:run of each job
-- ARGV[1] now_ms  ARGV[2…] for each job: id, its run under the lease, its run when completed
-- Reply: {the places, from 1, of the jobs that have another run}
local n, reply, ended, ids, sets, done = #KEYS - 2, {}, {}, {}, {}, 0
local runs = redis.call('MGET', unpack(KEYS, 3))
for i = 1, n do
  local at = 3 * i - 1
  if runs[i] == ARGV[at + 1] then
    done = done + 1
    ids[done] = ARGV[at]
    ended[2 * done - 1], ended[2 * done] = ARGV[1], ARGV[at]
    sets[2 * done - 1], sets[2 * done] = KEYS[2 + i], ARGV[at + 2]
  else
    reply[#reply + 1] = i
  end
end
if done > 0 then
  redis.call('ZADD', KEYS[2], unpack(ended))
  redis.call('MSET', unpack(sets))
  redis.call('ZREM', KEYS[1], unpack(ids))
end
return reply
