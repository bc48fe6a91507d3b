-- Adds jobs to one queue. Each set gets all its jobs in one command, so that no crash
-- makes half of a call visible. A job that exists is a repeat: it gets the entries and
-- the batch that an interrupted call did not reach, unless it was moved to another queue.
-- KEYS[1] cs:queue:t:ns:q:pending:critical  KEYS[2] …:pending:high  KEYS[3] …:pending
-- KEYS[4] …:pending:low: by the rank of the priority, from 0
-- KEYS[5] …:scheduled  KEYS[6] …:waiting  KEYS[7] …:held  KEYS[8] …:cursor
-- KEYS[9] …:expiry  KEYS[10] …:after  KEYS[11] cs:queue:t:index
-- KEYS[12] cs:idem:t:key, or KEYS[8] without one  KEYS[13] cs:queue:t:ns:q:config
-- KEYS[14] cs:events:t  KEYS[15] cs:approvals:t
-- KEYS[16 to 15+n] cs:job:t:id:run of each job
-- KEYS[16+n to 15+2n] cs:job:t:id:spec of each job
-- KEYS[16+2n…] cs:uniq:t:ns:q:key of those that have one; cs:batch:t:id:meta and :jobs
-- ARGV[1] n
-- ARGV[2] ns/q
-- ARGV[3] digest of the request under its idempotency key, '' without one
-- ARGV[4] the idempotency key's time-to-live in ms
-- ARGV[5] number of the batch's first key in KEYS, 0 for none
-- ARGV[6] '1' if a draining queue refuses the jobs, else ''
-- ARGV[7] now in ms
-- ARGV[8] the namespace outside of which the batch counts as missing, '' for none
-- ARGV[9…] five for each job: id, spec, run, score when pending, and '' or conditions
--   in words (include/enqueue_conditions.lua)
-- Reply: {'new' | 'again', for each job '' or the id that holds its unique key}
--   | CS_VALIDATION_IDEMPOTENCY_MISMATCH | CS_QUEUE_DRAINING_CONFLICT
--   | CS_BATCH_NOT_FOUND | CS_BATCH_SEALED_CONFLICT
-- include append.lua
-- include cursor.lua
-- include run.lua
-- include spec.lua
-- include idempotency.lua
-- include enqueue_conditions.lua
-- include event_log.lua
-- include enqueue_entries.lua
local cursor_key, expiry_key, after_key, queues_key, idempotency_key, config_key, events_key = unpack(KEYS, 8, 14)
local count, queue, digest, digest_ttl, batch, refuse_draining, now, namespace = unpack(ARGV, 1, 8)
local n = tonumber(count)
local batch_key
local batch_jobs_key
if batch ~= '0' then
  batch_key, batch_jobs_key = unpack(KEYS, tonumber(batch))
end

local earlier = digest ~= '' and redis.call('GET', idempotency_key)
if earlier then
  return earlier_reply(earlier, digest)
end
local refusal = queue_refusal(config_key, refuse_draining) or batch_refusal(batch_key, namespace)
if refusal then
  return redis.error_reply(refusal)
end

local reply = {'new'}
local records = {} -- key, spec and key, run of new jobs
local ids = {}
local unsure = false -- whether a unique key is held by a job that the caller did not know
local cursors = redis.call('HMGET', cursor_key, '0', '1', '2', '3')
local runs = redis.call('MGET', unpack(KEYS, 16, 15 + n))
for i = 1, n do
  local first = 9 + 5 * (i - 1)
  local id, spec, first_run, score, conditions = unpack(ARGV, first, first + 4)
  local expire_at, unique_key, unique_ttl, ended, living = parse_conditions(conditions)
  local run = runs[i]
  local holder = unique_key and redis.call('GET', unique_key)
  if holder and holder ~= id and holder ~= ended then
    unsure = unsure or holder ~= living
    reply[i + 1] = holder
  else
    reply[i + 1] = ''
    append(ids, id)
    if not run then
      if unique_key then
        redis.call('SET', unique_key, id, 'PX', unique_ttl)
      end
      note_added(id, first_run)
      append(records, KEYS[15 + n + i], spec)
      append(records, KEYS[15 + i], first_run)
    end
    if not run or spec_queue(redis.call('GET', KEYS[15 + n + i])) == spec_queue(spec) then
      add_entries(id, run or first_run, score, cursors, expire_at)
    end
  end
end
write_events(events_key, event_mode(config_key), queue, now)
if #records > 0 then
  redis.call('SADD', queues_key, queue)
end
for first = 1, #records, 1000 do -- unpack takes no more than Lua's stack holds
  redis.call('MSET', unpack(records, first, math.min(first + 999, #records)))
end
write_entries(expiry_key, after_key, KEYS[15])
-- The batch comes last: jobs that are counted in it and were never stored would keep it from ending.
if batch_jobs_key and #ids > 0 then
  redis.call('HSET', batch_key, 'changed_ms', now)
  redis.call('SADD', batch_jobs_key, unpack(ids))
end
if digest ~= '' and not unsure then
  redis.call('SET', idempotency_key, format_answer(digest, reply), 'PX', digest_ttl)
end
return reply
