-- Extends the leases of active jobs of one queue, and keeps what their workers tell.
-- KEYS[1] cs:queue:t:ns:q:active
-- KEYS[2 to 1+n] cs:job:t:id:run of each job  KEYS[2+n to 1+2n] cs:job:t:id:meta of each
-- ARGV[1] n
-- ARGV[2…] for each job: id, epoch, when its lease ends in ms, progress or '', checkpoint or ''
-- Reply: for each job 'ok' | 'gone' | its run, where the epoch does not hold it
local function arg(i, k) return ARGV[1 + 5 * (i - 1) + k] end
local n, reply, leases, sets, told = tonumber(ARGV[1]), {}, {}, {}, {}
local runs = redis.call('MGET', unpack(KEYS, 2, 1 + n))
for i = 1, n do
  local state, attempt, epoch, rest = string.match(runs[i] or '', '^(%a+) (%d+) (%d+) %d+(.*)$')
  if not state then
    reply[i] = 'gone'
  elseif state ~= 'active' or epoch ~= arg(i, 2) then
    reply[i] = runs[i]
  else
    reply[i] = 'ok'
    leases[#leases + 1], leases[#leases + 2] = arg(i, 3), arg(i, 1)
    sets[#sets + 1], sets[#sets + 2] = KEYS[1 + i], table.concat({'active', attempt, epoch, arg(i, 3)}, ' ') .. rest
    local tell = {}
    for k, field in ipairs({'progress', 'checkpoint'}) do
      if arg(i, 3 + k) ~= '' then
        tell[#tell + 1], tell[#tell + 2] = field, arg(i, 3 + k)
      end
    end
    if #tell > 0 then told[#told + 1] = {i, tell} end
  end
end
if #leases == 0 then
  return reply
end
redis.call('ZADD', KEYS[1], unpack(leases))
redis.call('MSET', unpack(sets))
for _, tell in ipairs(told) do
  redis.call('HSET', KEYS[1 + n + tell[1]], unpack(tell[2]))
end
return reply
