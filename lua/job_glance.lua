-- Tells where jobs stand and where they belong, without their payloads.
-- KEYS[1] to KEYS[n] cs:job:t:id:meta of each job
-- ARGV[1] n
-- Reply: for each job its run and how its spec begins, with its namespace and its
--   queue, '' for what is not there
local reply = {}
for i = 1, tonumber(ARGV[1]) do
  local meta = redis.call('HMGET', KEYS[0 + i], 'run', 'spec')
  reply[2 * i - 1] = meta[1] or ''
  reply[2 * i] = string.match(meta[2] or '', '^[^,]*,[^,]*,') or ''
end
return reply
