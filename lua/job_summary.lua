-- Reads the runs of jobs and the queues that they are in, without their payloads.
-- KEYS[1] to KEYS[n] cs:job:t:id:run of each job
-- KEYS[n+1] to KEYS[2n] cs:job:t:id:spec of each job
-- ARGV[1] n
-- Reply: two for each job: its run, "namespace,queue," as its spec begins; '' for what
--   does not exist
-- include spec.lua
local n = tonumber(ARGV[1])

local reply = {}
local runs = redis.call('MGET', unpack(KEYS, 1, n))
for i = 1, n do
  reply[2 * i - 1] = runs[i] or ''
  reply[2 * i] = spec_queue(redis.call('GETRANGE', KEYS[n + i], 0, 511)) or ''
end
return reply
