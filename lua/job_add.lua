-- Enters new pending jobs of one queue into its index. Their records are written before,
-- so that they need not pass through a script; a record without an entry is an enqueue
-- that was cut, which the sweeper completes.
-- KEYS[1] cs:queue:t:ns:q:config  KEYS[2] …:cursor  KEYS[3] cs:queue:t:index
-- KEYS[4 to 7] the pending jobs by the rank of their priority, from 0:
--   …:pending:critical, …:pending:high, …:pending, …:pending:low
-- ARGV[1] ns/q  ARGV[2 to 5] how many jobs each rank has  ARGV[6 to 9] the least of their scores
-- ARGV[10…] for each job, by rank: score, id
-- Reply: 'ok' | CS_QUEUE_DRAINING_CONFLICT
if redis.call('HGET', KEYS[1], 'draining') == '1' then
  return redis.error_reply('CS_QUEUE_DRAINING_CONFLICT the queue is draining and takes no new jobs')
end
redis.call('SADD', KEYS[3], ARGV[1])
local cursors, first = redis.call('HMGET', KEYS[2], '0', '1', '2', '3'), 10
for rank = 1, 4 do
  local n, cursor = tonumber(ARGV[1 + rank]), tonumber(cursors[rank] or '0')
  local last = first + 2 * n - 1
  if n > 0 and cursor > tonumber(ARGV[5 + rank]) then -- no fetch reads below the cursor
    for i = first, last, 2 do
      if cursor > tonumber(ARGV[i]) then ARGV[i] = cursors[rank] end
    end
  end
  if n > 0 then redis.call('ZADD', KEYS[3 + rank], 'NX', unpack(ARGV, first, last)) end
  first = last + 1
end
return 'ok'
