-- Moves schedules of one tenant on, each with the job that its tick makes, if any. The
-- job comes before the state: a schedule that was cut short between makes the same job
-- again, which changes nothing, since its id is derived from the tick.
-- KEYS[1] cs:schedule:t:due  KEYS[2] cs:queue:t:index
-- KEYS[3…] for each schedule: cs:schedule:t:ns:s:state, :inflight, and for one whose tick
--   makes a job: cs:job:t:id:run and :spec, the pending set of its priority (see job_enqueue.lua), cs:queue:t:ns:q:waiting, :expiry, :after,
--   :cursor, :config, cs:uniq:t:ns:q:key or :config again
-- ARGV[1] how many schedules
-- ARGV[2…] for each: ns/s, the turn that its state must have ('' for no state), next
--   tick in ms or '', how many words of the state's new fields, these, how many jobs in flight
--   have ended, their ids, and the job's id or ''; of a job: score among those in flight
--   or '', ns/q, spec, run, score when pending, rank of its priority, expire_at_ms or 0,
--   time-to-live of its unique key in ms or 0, id of a holder of
--   that key that has ended
-- Reply: for each: 'ok' | 'moved' (it is not as it was read) | 'draining' (the queue
--   takes no jobs) | 'held ID' (of the unique key's holder)
local a, k, reply = 1, 3, {}
local function take()
  a = a + 1
  return ARGV[a]
end
local function list()
  local out = {}
  for i = 1, tonumber(take()) do out[i] = take() end
  return out
end
local function make(job, at)
  if redis.call('HGET', KEYS[9 + at], 'draining') == '1' then return 'draining' end
  local unique, run = tonumber(job.ttl) > 0, redis.call('GET', KEYS[2 + at])
  local holder = unique and redis.call('GET', KEYS[10 + at])
  if holder and holder ~= job.id and holder ~= job.ended then return 'held ' .. holder end
  -- Marked before it is there: a mark without a job is known to be none.
  if job.mark ~= '' then redis.call('ZADD', KEYS[1 + at], job.mark, job.id) end
  if not run then
    if unique then redis.call('SET', KEYS[10 + at], job.id, 'PX', job.ttl) end
    redis.call('SADD', KEYS[2], job.queue)
    redis.call('MSET', KEYS[3 + at], job.spec, KEYS[2 + at], job.run)
  end
  local state, since = string.match(run or job.run, '^(%a+) %d+ %d+ (%d+)')
  if state ~= 'pending' and state ~= 'waiting' then return 'ok' end
  if job.expire ~= '0' then redis.call('ZADD', KEYS[6 + at], job.expire, job.id) end
  if state == 'waiting' then
    redis.call('ZADD', KEYS[7 + at], since, job.id)
    redis.call('ZADD', KEYS[5 + at], 'NX', since, job.id)
  else
    local cursor = redis.call('HGET', KEYS[8 + at], job.rank)
    local score = cursor and tonumber(cursor) > tonumber(job.score) and cursor or job.score
    redis.call('ZADD', KEYS[4 + at], 'NX', score, job.id)
  end
  return 'ok'
end
for i = 1, tonumber(ARGV[1]) do
  local member, turn, next, fields, gone, id = take(), take(), take(), list(), list(), take()
  local at, outcome = k, 'ok'
  k = k + (id == '' and 2 or 11)
  local job
  if id ~= '' then
    job = {id = id, mark = take(), queue = take(), spec = take(), run = take(), score = take(),
      rank = take(), expire = take(), ttl = take(), ended = take()}
  end
  if (redis.call('HGET', KEYS[0 + at], 'turn') or '') ~= turn then outcome = 'moved' end
  if outcome == 'ok' and #gone > 0 then redis.call('ZREM', KEYS[1 + at], unpack(gone)) end
  if outcome == 'ok' and job then outcome = make(job, at) end
  if outcome == 'ok' then
    if #fields > 0 then redis.call('HSET', KEYS[0 + at], unpack(fields)) end
    if next == '' then
      redis.call('ZREM', KEYS[1], member)
    else
      redis.call('ZADD', KEYS[1], next, member)
    end
  end
  reply[i] = outcome
end
return reply
