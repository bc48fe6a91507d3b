-- Completes active jobs of one queue whose lease still has the epoch that the
-- worker names. What the same epoch completed before is answered with success, and
-- what followed it is not done again.
-- KEYS[1] cs:queue:t:ns:q:active  KEYS[2] …:completed  KEYS[3] …:after
-- KEYS[4 to 3+n] cs:job:t:id:run of each job
-- KEYS[4+n…] cs:job:t:id:meta of those that have a result, in their order; then
--   cs:uniq:t:ns:q:key of those that have one
-- ARGV[1] now_ms  ARGV[2] n
-- ARGV[3…] for each job: id, epoch, result or '', place of its unique key or ''
-- Reply: for each job 'ok' | 'after' (ok, and something is to follow) | 'again', 'again after'
--   (the same epoch completed it before) | 'gone' (no such job) | its run, where the epoch
--   does not hold it
local now, n = ARGV[1], tonumber(ARGV[2])
local reply, ended, after, ids, sets, results, done = {}, {}, {}, {}, {}, {}, {}
local runs, metas = redis.call('MGET', unpack(KEYS, 4, 3 + n)), 3 + n
for i = 1, n do
  local id, epoch, result = ARGV[4 * i - 1], ARGV[4 * i], ARGV[4 * i + 1]
  if result ~= '' then metas = metas + 1 end
  local state, attempt, held, at, settled, worker, flag = string.match(runs[i] or '', '^(%a+) (%d+) (%d+) (%d+) (%S+) (%S+)(.*)$')
  local mine = state == 'active' and held == epoch
  if not state then
    reply[i] = 'gone'
  elseif mine or (state == 'completed' and settled == epoch .. 'a') then
    local follows = flag == ' 1' and (mine or redis.call('ZSCORE', KEYS[3], id))
    reply[i] = mine and (follows and 'after' or 'ok') or (follows and 'again after' or 'again')
    ids[#ids + 1], done[i] = id, true
    ended[#ended + 1], ended[#ended + 2] = mine and now or at, id
    if follows then
      after[#after + 1], after[#after + 2] = now, id
    end
    if mine then
      sets[#sets + 1], sets[#sets + 2] = KEYS[3 + i], 'completed ' .. attempt .. ' ' .. epoch .. ' ' .. now .. ' ' .. epoch .. 'a ' .. worker .. flag
      if result ~= '' then
        results[#results + 1] = {metas, result}
      end
    end
  else
    reply[i] = settled == epoch .. 'a' and 'again' or runs[i]
  end
end
if #ids == 0 then
  return reply
end
redis.call('ZADD', KEYS[2], unpack(ended))
if #after > 0 then
  redis.call('ZADD', KEYS[3], unpack(after))
end
for _, entry in ipairs(results) do
  redis.call('HSET', KEYS[0 + entry[1]], 'result', entry[2])
end
if #sets > 0 then
  redis.call('MSET', unpack(sets))
end
redis.call('ZREM', KEYS[1], unpack(ids))
for i = 1, n do
  local unique = ARGV[4 * i + 2]
  if unique ~= '' and done[i] and redis.call('GET', KEYS[0 + unique]) == ARGV[4 * i - 1] then
    redis.call('DEL', KEYS[0 + unique])
  end
end
return reply
