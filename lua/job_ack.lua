-- Completes active jobs of one queue whose lease still has the epoch that the worker
-- names. An epoch that has completed its job before is answered with success, and what
-- follows the job is not done again.
-- KEYS[1] cs:queue:t:ns:q:active
-- KEYS[2] …:completed
-- KEYS[3] …:after
-- KEYS[4] …:config
-- KEYS[5] cs:events:t
-- KEYS[6 to 5+n] cs:job:t:id:run of each job
-- KEYS[6+n…] cs:job:t:id:meta of those that have a result, in their order; then
--   cs:uniq:t:ns:q:key of those that have one
-- ARGV[1] now in ms
-- ARGV[2] n
-- ARGV[3] ns/q
-- ARGV[4…] four for each job: id, epoch, result or '', number of the key in KEYS that is
--   its unique key, or ''
-- Reply: for each job 'ok' | 'after' (ok, and something follows) | 'again', 'again after'
--   (the same epoch completed it before) | 'gone' (no such job) | its run, if the epoch
--   does not hold its lease
-- include append.lua
-- include run.lua
-- include event_log.lua
local active_key, completed_key, after_key, config_key, events_key = unpack(KEYS, 1, 5)
local now, count, queue = unpack(ARGV, 1, 3)
local n = tonumber(count)

local reply = {}
local acknowledged = {}
local completed = {} -- entries: score, id
local after = {}     -- entries
local new_runs = {}  -- key, run
local results = {}   -- key, result
local unique_keys = {} -- by id
local meta_number = 5 + n
local runs = redis.call('MGET', unpack(KEYS, 6, 5 + n))
for i = 1, n do
  local first = 4 + 4 * (i - 1)
  local id, epoch, result, unique = unpack(ARGV, first, first + 3)
  if unique ~= '' then
    unique_keys[id] = KEYS[tonumber(unique)]
  end
  if result ~= '' then
    meta_number = meta_number + 1
  end
  local state, attempt, held_epoch, at, settled, worker, follows = parse_run(runs[i])
  local settled_now = epoch .. 'a'
  local holds = state == 'active' and held_epoch == epoch
  if not state then
    reply[i] = 'gone'
  elseif holds then
    reply[i] = 'ok'
    acknowledged[#acknowledged + 1] = id
    append(completed, now, id)
    note_event('job.completed', id, event_detail(attempt, worker))
    append(new_runs, KEYS[5 + i], format_run('completed', attempt, epoch, now, settled_now, worker, follows))
    if follows == '1' then
      reply[i] = 'after'
      append(after, now, id)
    end
    if result ~= '' then
      append(results, KEYS[meta_number], result)
    end
  elseif state == 'completed' and settled == settled_now then
    reply[i] = 'again'
    append(acknowledged, id)
    append(completed, at, id)
    if follows == '1' and redis.call('ZSCORE', after_key, id) then
      reply[i] = 'again after'
      append(after, now, id)
    end
  else
    reply[i] = settled == settled_now and 'again' or runs[i]
  end
end
if #acknowledged == 0 then
  return reply
end
write_events(events_key, event_mode(config_key), queue, now)
redis.call('ZADD', completed_key, unpack(completed))
if #after > 0 then
  redis.call('ZADD', after_key, unpack(after))
end
for i = 1, #results, 2 do
  redis.call('HSET', results[i], 'result', results[i + 1])
end
if #new_runs > 0 then
  redis.call('MSET', unpack(new_runs))
end
redis.call('ZREM', active_key, unpack(acknowledged))
for _, id in ipairs(acknowledged) do
  local unique_key = unique_keys[id]
  if unique_key and redis.call('GET', unique_key) == id then
    redis.call('DEL', unique_key)
  end
end
return reply
