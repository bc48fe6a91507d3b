-- Moves run and spec of jobs of an older layout, which kept both in the hash, to keys of
-- their own.
-- KEYS[1] to KEYS[3n] cs:job:t:id:meta, :run and :spec of each job
-- ARGV[1] n
-- Reply: how many jobs were moved
local moved = 0
for first = 1, 3 * tonumber(ARGV[1]), 3 do
  local meta_key, run_key, spec_key = unpack(KEYS, first, first + 2)
  local run, spec, follows = unpack(redis.call('HMGET', meta_key, 'run', 'spec', 'after'))
  if run and spec and not redis.call('GET', run_key) then
    if follows then -- the older run lacks this word
      run = run .. ' ' .. follows
    end
    redis.call('MSET', run_key, run, spec_key, spec)
    moved = moved + 1
  end
  if run then
    redis.call('HDEL', meta_key, 'run', 'spec', 'after')
  end
end
return moved
