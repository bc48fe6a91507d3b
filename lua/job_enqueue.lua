-- Adds jobs to one queue. Each set takes all its jobs in one command, so that no
-- crash makes half of a call visible. A job whose meta exists is a repeat: it gets
-- the index or the batch that a cut call did not reach, unless it has been moved.
-- KEYS[1] cs:queue:t:ns:q:pending:critical  KEYS[2] …:pending:high  KEYS[3] …:pending
-- KEYS[4] …:pending:low: by the rank of the priority, from 0  KEYS[5] …:scheduled
-- KEYS[6] …:waiting  KEYS[7] …:held  KEYS[8] …:cursor  KEYS[9] …:expiry  KEYS[10] …:after
-- KEYS[11] cs:queue:t:index  KEYS[12] cs:idem:t:key, or KEYS[8] where there is none  KEYS[13] cs:queue:t:ns:q:config
-- KEYS[14 to 13+n] cs:job:t:id:meta of each job
-- KEYS[14+n…] cs:uniq:t:ns:q:key of those that have one; cs:batch:t:id:meta and :jobs
-- ARGV[1] n  ARGV[2] ns/q  ARGV[3] digest of the request under its idempotency key, '' none
-- ARGV[4] its time-to-live in ms  ARGV[5] place of the batch's first key, 0 none
-- ARGV[6] '1' if a draining queue refuses them, else ''
-- ARGV[7…] for each job: id, spec, run, score when pending, rank of its priority,
--   expire_at_ms or 0, place of its unique key or 0, that one's time-to-live in ms, id of
--   a holder that has ended, id of one that lives, '1' if something follows its end, '2' if
--   unless it completes, or ''
-- Reply: {'new' | 'again', for each job '' or the id that holds its unique key}
--   | CS_VALIDATION_IDEMPOTENCY_MISMATCH | CS_QUEUE_DRAINING_CONFLICT | CS_BATCH_NOT_FOUND | CS_BATCH_SEALED_CONFLICT
local n, batch, places = tonumber(ARGV[1]), tonumber(ARGV[5]), {pending = 1, scheduled = 5, waiting = 6, held = 7}
local function arg(i, k) return ARGV[6 + 11 * (i - 1) + k] end
-- A spec begins with its namespace and its queue.
local function home(spec) return string.match(spec or '', '^[^,]*,[^,]*,') end
local held = ARGV[3] ~= '' and redis.call('GET', KEYS[12])
if held then
  local reply = {'again'}
  for holder in string.gmatch(held, ' ([^ ]*)') do
    reply[#reply + 1] = holder
  end
  if string.match(held, '^%S+') ~= ARGV[3] then
    return redis.error_reply('CS_VALIDATION_IDEMPOTENCY_MISMATCH the Idempotency-Key was used with another request')
  end
  return reply
end
if ARGV[6] == '1' and redis.call('HGET', KEYS[13], 'draining') == '1' then
  return redis.error_reply('CS_QUEUE_DRAINING_CONFLICT the queue is draining and takes no new jobs')
end
local sealed = batch > 0 and redis.call('HGET', KEYS[0 + batch], 'sealed')
if batch > 0 and sealed ~= '0' then
  return redis.error_reply(sealed and 'CS_BATCH_SEALED_CONFLICT the batch is sealed' or 'CS_BATCH_NOT_FOUND no such batch')
end
local reply, fresh, indexed, ids, unsure, nothing = {'new'}, {}, {}, {}, false, {}
for i = 1, n do
  local unique, holder = tonumber(arg(i, 7)), ''
  local other = unique > 0 and redis.call('GET', KEYS[0 + unique])
  if other and other ~= arg(i, 1) and other ~= arg(i, 9) then
    holder, unsure = other, unsure or other ~= arg(i, 10)
  end
  reply[i + 1] = holder
  if holder == '' then
    local run = redis.call('HGET', KEYS[13 + i], 'run')
    if not run then
      fresh[#fresh + 1] = i
      if unique > 0 then
        redis.call('SET', KEYS[0 + unique], arg(i, 1), 'PX', arg(i, 8))
      end
    end
    ids[#ids + 1] = arg(i, 1)
    local state, at = 'pending', ''
    if run or string.byte(arg(i, 3)) ~= 112 then state, at = string.match(run or arg(i, 3), '^(%a+) %d+ %d+ (%d+)') end
    if places[state] and (not run or home(redis.call('HGET', KEYS[13 + i], 'spec')) == home(arg(i, 2))) then
      indexed[#indexed + 1] = {i, places[state], at}
    end
  end
end
if #fresh > 0 then redis.call('SADD', KEYS[11], ARGV[2]) end
for _, i in ipairs(fresh) do
  redis.call('HSET', KEYS[13 + i], 'spec', arg(i, 2), 'run', arg(i, 3), unpack(arg(i, 11) ~= '' and {'after', arg(i, 11)} or nothing))
end
local cursors = redis.call('HMGET', KEYS[8], '0', '1', '2', '3')
local sets, expiry, after = {{}, {}, {}, {}, {}, {}, {}}, {}, {}
for _, entry in ipairs(indexed) do
  local i, place, score = entry[1], entry[2], entry[3]
  if place == 1 then
    place = tonumber(arg(i, 5)) + 1
    local cursor = cursors[place]
    score = cursor and tonumber(cursor) > tonumber(arg(i, 4)) and cursor or arg(i, 4)
  end
  local set = sets[place]
  set[#set + 1], set[#set + 2] = score, arg(i, 1)
  if arg(i, 6) ~= '0' then
    expiry[#expiry + 1], expiry[#expiry + 2] = arg(i, 6), arg(i, 1)
  end
  if place == places.waiting then
    after[#after + 1], after[#after + 2] = score, arg(i, 1)
  end
end
if #expiry > 0 then redis.call('ZADD', KEYS[9], unpack(expiry)) end
if #after > 0 then redis.call('ZADD', KEYS[10], unpack(after)) end
for place = 1, 7 do
  if #sets[place] > 0 then redis.call('ZADD', KEYS[0 + place], 'NX', unpack(sets[place])) end
end
-- The batch last: jobs that never came to be would keep it from its end.
if batch > 0 and #ids > 0 then redis.call('SADD', KEYS[1 + batch], unpack(ids)) end
if ARGV[3] ~= '' and not unsure then
  reply[1] = ARGV[3]
  redis.call('SET', KEYS[12], table.concat(reply, ' '), 'PX', ARGV[4])
  reply[1] = 'new'
end
return reply
