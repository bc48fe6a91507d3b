-- Gives jobs of the older layout, which kept spec and run in the hash, keys for both.
-- KEYS[1] to KEYS[3n] cs:job:t:id:meta, :run and :spec of each job
-- ARGV[1] n
-- Reply: how many got them
local moved = 0
for i = 1, 3 * tonumber(ARGV[1]), 3 do
  local held = redis.call('HMGET', KEYS[0 + i], 'run', 'spec', 'after')
  if held[1] and held[2] and not redis.call('GET', KEYS[1 + i]) then
    local run = held[3] and held[1] .. ' ' .. held[3] or held[1]
    redis.call('MSET', KEYS[1 + i], run, KEYS[2 + i], held[2])
    moved = moved + 1
  end
  if held[1] then
    redis.call('HDEL', KEYS[0 + i], 'run', 'spec', 'after')
  end
end
return moved
