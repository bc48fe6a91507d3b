-- Tells where jobs stand and where they belong, without their payloads.
-- KEYS[1] to KEYS[n] cs:job:t:id:run of each job  KEYS[n+1] to KEYS[2n] cs:job:t:id:spec of each
-- ARGV[1] n
-- Reply: for each job its run and how its spec begins, with its namespace and its
--   queue, '' for what is not there
local n, reply = tonumber(ARGV[1]), {}
local runs = redis.call('MGET', unpack(KEYS, 1, n))
for i = 1, n do
  reply[2 * i - 1] = runs[i] or ''
  reply[2 * i] = string.match(redis.call('GETRANGE', KEYS[0 + n + i], 0, 511) or '', '^[^,]*,[^,]*,') or ''
end
return reply
