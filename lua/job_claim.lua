-- Hands pending jobs of one queue to a worker under a lease, each only where its run
-- equals the one that the fetch knows: whatever happens to a job changes its run. A pending job
-- with another run ends the claim.
-- KEYS[1] cs:queue:t:ns:q:config  KEYS[2] …:cursor  KEYS[3] …:rate
-- KEYS[4] …:active
-- KEYS[5 to 8] the pending jobs by the rank of their priority, from 0:
--   …:pending:critical, …:pending:high, …:pending, …:pending:low
-- KEYS[9 to 8+n] cs:job:t:id:run of each candidate, by rank, then by score
-- ARGV[1] now_ms  ARGV[2] when the leases end, in ms  ARGV[3] how many jobs at most
-- ARGV[4] n  ARGV[5 to 8] the score of each rank's last candidate
-- ARGV[9…] in groups of candidates of one rank and one run: their rank from 1, how many
--   they are, their run as the fetch knows it or '', their run under the lease, or '' for
--   those that are not pending in this queue and leave the index; then their ids
-- Reply: {'ok'|'paused'|'full'|'limited', ms after which it may be worth asking again
--   (limited only), how many jobs the limits allowed, the four cursors or '', the places
--   of the jobs claimed, from 1}. Without candidates the cursors are left out.
local now, n, room = tonumber(ARGV[1]), tonumber(ARGV[4]), tonumber(ARGV[3])
local config = redis.call('HMGET', KEYS[1], 'paused', 'max_concurrency', 'rate_limit', 'rate_window_ms')
if config[1] == '1' then
  return {'paused', '0', 0}
end
local most, limit, span = tonumber(config[2] or '0'), tonumber(config[3] or '0'), tonumber(config[4] or '0')
if most > 0 then
  room = math.min(room, most - redis.call('ZCARD', KEYS[4]))
  if room <= 0 then
    return {'full', '0', 0}
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
    return {'limited', string.format('%.0f', (oldest + 10) * slice - now), 0}
  end
end
if n == 0 then return {'ok', '0', room} end
local reply, adds, sets, gone, touched = {'ok', '0', room, '', '', '', ''}, {}, {}, {{}, {}, {}, {}}, {}
local runs, taken, at, i = redis.call('MGET', unpack(KEYS, 9, 8 + n)), 0, 9, 0
while i < n do
  local rank, size, known, leased = tonumber(ARGV[at]), tonumber(ARGV[at + 1]), ARGV[at + 2], ARGV[at + 3]
  local ids = gone[rank]
  for k = at + 4, at + 3 + size do
    i = i + 1
    if taken < room then
      if (runs[i] or '') == known then
        ids[#ids + 1] = ARGV[k]
        if leased ~= '' then
          taken = taken + 1
          adds[2 * taken - 1], adds[2 * taken] = ARGV[2], ARGV[k]
          sets[2 * taken - 1], sets[2 * taken] = KEYS[8 + i], leased
          reply[7 + taken] = i
        end
      elseif string.sub(runs[i] or '', 1, 8) == 'pending ' then
        room = taken -- it is its turn, and none is served before it
      end
      touched[rank] = ARGV[4 + rank]
    end
  end
  at = at + 4 + size
end
if taken > 0 then
  redis.call('ZADD', KEYS[4], unpack(adds))
  redis.call('MSET', unpack(sets))
end
for rank = 1, 4 do
  if #gone[rank] > 0 then
    redis.call('ZREM', KEYS[4 + rank], unpack(gone[rank]))
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
-- The cursor of a priority is its first member that remains, else the score of its
-- last candidate: no member lies below it.
local cursors = redis.call('HMGET', KEYS[2], '0', '1', '2', '3')
for rank = 1, 4 do
  if touched[rank] then
    local head = redis.call('ZRANGEBYSCORE', KEYS[4 + rank], cursors[rank] or '-inf', string.format('(%.0f', rank * 2 ^ 51), 'WITHSCORES', 'LIMIT', 0, 1)
    cursors[rank] = string.format('%.0f', math.max(tonumber(cursors[rank] or '0'), tonumber(head[2] or touched[rank])))
    redis.call('HSET', KEYS[2], tostring(rank - 1), cursors[rank])
  end
  reply[rank + 3] = cursors[rank] or ''
end
return reply
