-- Enters a job among those that wait for others.
-- KEYS[1] to KEYS[n] cs:job:t:id:run of each job waited for
-- KEYS[n+1 to 2n] cs:job:t:id:dependents of each
-- ARGV[1] n  ARGV[2…] ids of the waiting jobs
-- Reply: for each job waited for its run, '' where there is none (nothing is entered then)
local n, reply, missing = tonumber(ARGV[1]), {}, false
local runs, sets = redis.call('MGET', unpack(KEYS, 1, n)), {}
for i = 1, n do
  reply[i] = runs[i] or ''
  missing = missing or reply[i] == ''
end
if missing then
  return reply
end
for i = 1, n do
  redis.call('SADD', KEYS[0 + n + i], unpack(ARGV, 2))
  -- Something follows its end from now on.
  sets[#sets + 1], sets[#sets + 2] = KEYS[0 + i], string.match(reply[i], '^%a+ %d+ %d+ %d+ %S+ %S+') .. ' 1'
end
redis.call('MSET', unpack(sets))
return reply
