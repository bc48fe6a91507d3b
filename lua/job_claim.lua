-- Hands pending jobs of one queue to a worker under a lease. A candidate that is
-- not pending any more, or in another queue now, is taken out of the index and
-- passed over.
-- KEYS[1] cs:queue:t:ns:q:config  KEYS[2] …:cursor  KEYS[3] …:rate
-- KEYS[4] …:active
-- KEYS[5 to 8] the pending jobs by the rank of their priority, from 0:
--   …:pending:critical, …:pending:high, …:pending, …:pending:low
-- KEYS[9 to 8+n] cs:job:t:id:meta of each candidate, in the order of their scores
-- ARGV[1] now_ms  ARGV[2] when the leases end, in ms  ARGV[3] the worker's id
-- ARGV[4] how many jobs at most  ARGV[5] n  ARGV[6] how specs of this queue begin
-- ARGV[7…] for each candidate: id, score
-- Reply: {'ok'|'paused'|'full'|'limited', ms after which it may be worth asking again
--   (limited only), the four cursors or '', for each job: id, spec, attempt, epoch, checkpoint or ''}
local now, n, room = tonumber(ARGV[1]), tonumber(ARGV[5]), tonumber(ARGV[4])
local config = redis.call('HMGET', KEYS[1], 'paused', 'max_concurrency', 'rate_limit', 'rate_window_ms')
if config[1] == '1' then
  return {'paused', '0'}
end
local most, limit, span = tonumber(config[2] or '0'), tonumber(config[3] or '0'), tonumber(config[4] or '0')
if most > 0 then
  room = math.min(room, most - redis.call('ZCARD', KEYS[4]))
  if room <= 0 then
    return {'full', '0'}
  end
end
-- The window slides by tenths: {tenth = jobs begun in it}. Far ahead of now are only
-- those of a window that was shorter: they would never leave this one.
local tenths, slice = {}, math.max(1, math.floor(span / 10))
local current = math.floor(now / slice)
if limit > 0 then
  local used, oldest = 0, current
  for tenth, count in string.gmatch(redis.call('HGET', KEYS[3], 'tenths') or '', '(%d+):(%d+)') do
    tenth, count = tonumber(tenth), tonumber(count)
    if tenth > current - 10 and tenth <= current + 10 then
      tenths[tenth], used, oldest = count, used + count, math.min(oldest, tenth)
    end
  end
  room = math.min(room, limit - used)
  if room <= 0 then
    return {'limited', string.format('%.0f', (oldest + 10) * slice - now)}
  end
end
local reply, adds, sets, gone, touched = {'ok', '0', '', '', '', ''}, {}, {}, {}, {}
local taken = 0
for i = 1, n do
  local id, score = ARGV[5 + 2 * i], tonumber(ARGV[6 + 2 * i])
  if taken < room then
    local meta = redis.call('HMGET', KEYS[8 + i], 'run', 'spec')
    local state, attempt, epoch, _, settled = string.match(meta[1] or '', '^(%a+) (%d+) (%d+) (%d+) (%S+)')
    if state == 'pending' and string.sub(meta[2], 1, #ARGV[6]) == ARGV[6] then
      taken = taken + 1
      -- Only a worker leaves a checkpoint, so a job's first lease has none.
      local checkpoint = epoch ~= '0' and redis.call('HGET', KEYS[8 + i], 'checkpoint')
      attempt, epoch = tonumber(attempt) + 1, tonumber(epoch) + 1
      adds[#adds + 1], adds[#adds + 2] = ARGV[2], id
      sets[taken] = {i, 'active ' .. attempt .. ' ' .. epoch .. ' ' .. ARGV[2] .. ' ' .. settled .. ' ' .. ARGV[3]}
      local at = #reply
      reply[at + 1], reply[at + 2], reply[at + 3] = id, meta[2], tostring(attempt)
      reply[at + 4], reply[at + 5] = tostring(epoch), checkpoint or ''
    end
    local rank = math.floor(score / 2 ^ 51)
    gone[rank] = gone[rank] or {}
    gone[rank][#gone[rank] + 1], touched[rank] = id, score
  end
end
if #adds > 0 then
  redis.call('ZADD', KEYS[4], unpack(adds))
end
for _, set in ipairs(sets) do
  redis.call('HSET', KEYS[8 + set[1]], 'run', set[2])
end
for rank = 0, 3 do
  if gone[rank] then
    redis.call('ZREM', KEYS[5 + rank], unpack(gone[rank]))
  end
end
if limit > 0 and taken > 0 then
  tenths[current] = (tenths[current] or 0) + taken
  local kept = {}
  for tenth, count in pairs(tenths) do
    kept[#kept + 1] = string.format('%.0f:%.0f', tenth, count)
  end
  redis.call('HSET', KEYS[3], 'tenths', table.concat(kept, ','))
end
-- The cursor of a priority is its first member that remains, else the last that
-- was taken: none lies below it.
local cursors = redis.call('HMGET', KEYS[2], '0', '1', '2', '3')
for rank = 0, 3 do
  if touched[rank] then
    local first = redis.call('ZRANGEBYSCORE', KEYS[5 + rank], cursors[rank + 1] or '-inf', string.format('(%.0f', (rank + 1) * 2 ^ 51), 'WITHSCORES', 'LIMIT', 0, 1)
    cursors[rank + 1] = string.format('%.0f', math.max(tonumber(cursors[rank + 1] or '0'), tonumber(first[2] or touched[rank])))
    redis.call('HSET', KEYS[2], tostring(rank), cursors[rank + 1])
  end
  reply[rank + 3] = cursors[rank + 1] or ''
end
return reply
