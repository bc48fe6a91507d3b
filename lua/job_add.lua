-- Adds new pending jobs of one queue to its index. Their records are written before, so
-- that they do not have to pass through a script; a record without an entry is an
-- interrupted enqueue, which the sweeper completes.
-- KEYS[1] cs:queue:t:ns:q:config
-- KEYS[2] …:cursor
-- KEYS[3] cs:queue:t:index
-- KEYS[4 to 7] the pending jobs by the rank of their priority, from 0:
--   …:pending:critical, …:pending:high, …:pending, …:pending:low
-- KEYS[8] cs:events:t
-- ARGV[1] ns/q
-- ARGV[2 to 5] how many jobs each rank has
-- ARGV[6 to 9] the lowest of their scores
-- ARGV[10] now in ms
-- ARGV[11] the detail of the events of new jobs
-- ARGV[12…] two for each job, by rank: score, id
-- Reply: 'ok' | CS_QUEUE_DRAINING_CONFLICT
-- include event_log.lua
local config_key, cursor_key, queues_key = unpack(KEYS, 1, 3)
local events_key = KEYS[8]
local queue = ARGV[1]
local counts = {unpack(ARGV, 2, 5)}
local lowest_scores = {unpack(ARGV, 6, 9)}
local now, detail = unpack(ARGV, 10, 11)

local config = redis.call('HMGET', config_key, 'draining', 'events')
if config[1] == '1' then
  return redis.error_reply('CS_QUEUE_DRAINING_CONFLICT the queue is draining and accepts no new jobs')
end
if config[2] == 'all' then
  for argument = 13, #ARGV, 2 do
    note_event('job.enqueued', ARGV[argument], detail)
  end
  write_events(events_key, 'all', queue, now)
end
redis.call('SADD', queues_key, queue)
local cursors = redis.call('HMGET', cursor_key, '0', '1', '2', '3')
local first = 12
for rank = 1, 4 do
  local count = tonumber(counts[rank])
  local cursor = tonumber(cursors[rank] or '0')
  local last = first + 2 * count - 1
  -- No fetch reads below the cursor. Scores above it, the usual case, stay untouched.
  if count > 0 and cursor > tonumber(lowest_scores[rank]) then
    for i = first, last, 2 do
      if cursor > tonumber(ARGV[i]) then
        ARGV[i] = cursors[rank]
      end
    end
  end
  if count > 0 then
    redis.call('ZADD', KEYS[3 + rank], 'NX', unpack(ARGV, first, last))
  end
  first = last + 1
end
return 'ok'
