-- Extends the leases of active jobs of one queue, and keeps what their workers tell.
-- KEYS[1] cs:queue:t:ns:q:active
-- KEYS[2 to 1+n] cs:job:t:id:meta of each job
-- ARGV[1] n
-- ARGV[2…] for each job: id, epoch, when its lease ends in ms, progress or '', checkpoint or ''
-- Reply: for each job 'ok' | 'gone' | its run, where the epoch does not hold it
local function arg(i, k) return ARGV[1 + 5 * (i - 1) + k] end
local reply, leases, sets = {}, {}, {}
for i = 1, tonumber(ARGV[1]) do
  local run = redis.call('HGET', KEYS[1 + i], 'run')
  local state, attempt, epoch, _, settled, by = string.match(run or '', '^(%a+) (%d+) (%d+) (%d+) (%S+) (%S+)')
  if not state then
    reply[i] = 'gone'
  elseif state ~= 'active' or epoch ~= arg(i, 2) then
    reply[i] = run
  else
    reply[i] = 'ok'
    leases[#leases + 1], leases[#leases + 2] = arg(i, 3), arg(i, 1)
    local set = {'run', table.concat({'active', attempt, epoch, arg(i, 3), settled, by}, ' ')}
    for k, field in ipairs({'progress', 'checkpoint'}) do
      if arg(i, 3 + k) ~= '' then
        set[#set + 1], set[#set + 2] = field, arg(i, 3 + k)
      end
    end
    sets[#sets + 1] = {i, set}
  end
end
if #leases > 0 then
  redis.call('ZADD', KEYS[1], unpack(leases))
end
for _, set in ipairs(sets) do
  redis.call('HSET', KEYS[1 + set[1]], unpack(set[2]))
end
return reply
