-- Completes active jobs of one queue whose lease still has the epoch that the
-- worker names. What the same epoch completed before is answered with success, and
-- what followed it is not done again.
-- KEYS[1] cs:queue:t:ns:q:active  KEYS[2] …:completed  KEYS[3] …:after
-- KEYS[4 to 3+n] cs:job:t:id:meta of each job
-- KEYS[4+n…] cs:uniq:t:ns:q:key of those that have one
-- ARGV[1] now_ms  ARGV[2] n
-- ARGV[3…] for each job: id, epoch, result or '', place of its unique key or 0
-- Reply: for each job 'ok' | 'after' (ok, and something is to follow) | 'again', 'again after'
--   (the same epoch completed it before) | 'gone' (no such job) | its run, where the epoch
--   does not hold it
local now, n = ARGV[1], tonumber(ARGV[2])
local function arg(i, k) return ARGV[2 + 4 * (i - 1) + k] end
local reply, ended, after, ids, sets, done = {}, {}, {}, {}, {}, {}
for i = 1, n do
  local id, epoch = arg(i, 1), arg(i, 2)
  local meta = redis.call('HMGET', KEYS[3 + i], 'run', 'after')
  local state, attempt, held, at, settled, by = string.match(meta[1] or '', '^(%a+) (%d+) (%d+) (%d+) (%S+) (%S+)')
  local mine = state == 'active' and held == epoch
  if not state then
    reply[i] = 'gone'
  elseif mine or (state == 'completed' and settled == epoch .. 'a') then
    local follows = meta[2] == '1' and (mine or redis.call('ZSCORE', KEYS[3], id))
    reply[i] = mine and (follows and 'after' or 'ok') or (follows and 'again after' or 'again')
    ids[#ids + 1], done[i] = id, true
    ended[#ended + 1], ended[#ended + 2] = mine and now or at, id
    if follows then
      after[#after + 1], after[#after + 2] = now, id
    end
    if mine then
      sets[#sets + 1] = {i, 'completed ' .. attempt .. ' ' .. epoch .. ' ' .. now .. ' ' .. epoch .. 'a ' .. by}
    end
  else
    reply[i] = settled == epoch .. 'a' and 'again' or meta[1]
  end
end
if #ids == 0 then
  return reply
end
redis.call('ZADD', KEYS[2], unpack(ended))
if #after > 0 then
  redis.call('ZADD', KEYS[3], unpack(after))
end
for _, set in ipairs(sets) do
  local i = set[1]
  if arg(i, 3) == '' then
    redis.call('HSET', KEYS[3 + i], 'run', set[2])
  else
    redis.call('HSET', KEYS[3 + i], 'result', arg(i, 3), 'run', set[2])
  end
end
redis.call('ZREM', KEYS[1], unpack(ids))
for i = 1, n do
  local unique = tonumber(arg(i, 4))
  if unique > 0 and done[i] and redis.call('GET', KEYS[0 + unique]) == arg(i, 1) then
    redis.call('DEL', KEYS[0 + unique])
  end
end
return reply
