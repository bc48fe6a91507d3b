-- Adds jobs to one queue. Each set takes all its jobs in one command, so that no
-- crash makes half of a call visible. A job that exists is a repeat: it gets the
-- index or the batch that a cut call did not reach, unless it has been moved.
-- KEYS[1] cs:queue:t:ns:q:pending:critical  KEYS[2] …:pending:high  KEYS[3] …:pending
-- KEYS[4] …:pending:low: by the rank of the priority, from 0  KEYS[5] …:scheduled
-- KEYS[6] …:waiting  KEYS[7] …:held  KEYS[8] …:cursor  KEYS[9] …:expiry  KEYS[10] …:after
-- KEYS[11] cs:queue:t:index  KEYS[12] cs:idem:t:key, or KEYS[8] where there is none  KEYS[13] cs:queue:t:ns:q:config
-- KEYS[14 to 13+n] cs:job:t:id:run of each job  KEYS[14+n to 13+2n] cs:job:t:id:spec of each
-- KEYS[14+2n…] cs:uniq:t:ns:q:key of those that have one; cs:batch:t:id:meta and :jobs
-- ARGV[1] n  ARGV[2] ns/q  ARGV[3] digest of the request under its idempotency key, '' none
-- ARGV[4] its time-to-live in ms  ARGV[5] place of the batch's first key, 0 none
-- ARGV[6] '1' if a draining queue refuses them, else ''
-- ARGV[7…] for each job: id, spec, run, score when pending, and '' or, in words:
--   expire_at_ms or 0, place of its unique key or 0, that one's time-to-live in ms, id of
--   a holder that has ended or -, id of one that lives or -
-- Reply: {'new' | 'again', for each job '' or the id that holds its unique key}
--   | CS_VALIDATION_IDEMPOTENCY_MISMATCH | CS_QUEUE_DRAINING_CONFLICT | CS_BATCH_NOT_FOUND | CS_BATCH_SEALED_CONFLICT
local n, batch, places = tonumber(ARGV[1]), tonumber(ARGV[5]), {pending = 1, scheduled = 5, waiting = 6, held = 7}
-- A spec begins with its namespace and its queue.
local function home(spec) return string.match(spec or '', '^[^,]*,[^,]*,') end
local held = ARGV[3] ~= '' and redis.call('GET', KEYS[12])
if held and string.match(held, '^%S+') ~= ARGV[3] then
  return redis.error_reply('CS_VALIDATION_IDEMPOTENCY_MISMATCH the Idempotency-Key was used with another request')
elseif held then
  local reply = {'again'}
  for holder in string.gmatch(held, ' ([^ ]*)') do reply[#reply + 1] = holder end
  return reply
end
if ARGV[6] == '1' and redis.call('HGET', KEYS[13], 'draining') == '1' then
  return redis.error_reply('CS_QUEUE_DRAINING_CONFLICT the queue is draining and takes no new jobs')
end
local sealed = batch > 0 and redis.call('HGET', KEYS[0 + batch], 'sealed')
if batch > 0 and sealed ~= '0' then
  return redis.error_reply(sealed and 'CS_BATCH_SEALED_CONFLICT the batch is sealed' or 'CS_BATCH_NOT_FOUND no such batch')
end
local reply, records, indexed, ids, expiry, unsure = {'new'}, {}, {}, {}, {}, false
local runs = redis.call('MGET', unpack(KEYS, 14, 13 + n))
for i = 1, n do
  local at = 2 + 5 * i
  local id, run, holder = ARGV[at], runs[i], ''
  local expire, unique, ttl, ended, living = string.match(ARGV[at + 4], '^(%S+) (%S+) (%S+) (%S+) (%S+)$')
  unique = tonumber(unique or 0)
  local other = unique > 0 and redis.call('GET', KEYS[0 + unique])
  if other and other ~= id and other ~= ended then
    holder, unsure = other, unsure or other ~= living
  end
  reply[i + 1] = holder
  if holder == '' then
    if not run then
      if unique > 0 then redis.call('SET', KEYS[0 + unique], id, 'PX', ttl) end
      local last = #records
      records[last + 1], records[last + 2] = KEYS[13 + n + i], ARGV[at + 1]
      records[last + 3], records[last + 4] = KEYS[13 + i], ARGV[at + 2]
    end
    ids[#ids + 1] = id
    local state, since = string.match(run or ARGV[at + 2], '^(%a+) %d+ %d+ (%d+)')
    if places[state] and (not run or home(redis.call('GET', KEYS[13 + n + i])) == home(ARGV[at + 1])) then
      indexed[#indexed + 1] = {id, places[state], since, ARGV[at + 3]}
      if (expire or '0') ~= '0' then expiry[#expiry + 1], expiry[#expiry + 2] = expire, id end
    end
  end
end
if #records > 0 then
  redis.call('SADD', KEYS[11], ARGV[2])
  for from = 1, #records, 1000 do -- Lua's stack is small
    redis.call('MSET', unpack(records, from, math.min(from + 999, #records)))
  end
end
local cursors = redis.call('HMGET', KEYS[8], '0', '1', '2', '3')
local sets, after = {{}, {}, {}, {}, {}, {}, {}}, {}
for _, entry in ipairs(indexed) do
  local id, place, score = entry[1], entry[2], entry[3]
  if place == 1 then
    score = entry[4]
    place = math.floor(tonumber(score) / 2 ^ 51) + 1
    local cursor = cursors[place]
    score = cursor and tonumber(cursor) > tonumber(score) and cursor or score
  end
  local set = sets[place]
  set[#set + 1], set[#set + 2] = score, id
  if place == places.waiting then after[#after + 1], after[#after + 2] = score, id end
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
