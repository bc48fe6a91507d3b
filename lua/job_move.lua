-- Takes jobs from one state to another, each if its run still is what the caller
-- read. The indexes are written around that: the new one before it, the old one
-- after it. Of a job's errors the last hundred are kept: one that is continued and
-- fails in turns would fill the store.
-- KEYS[1] cs:queue:t:ns:q:cursor of the queue that jobs go to
-- KEYS[2] …:after of that queue
-- KEYS[3 to 2+m] the sets that jobs leave and enter
-- KEYS[3+m to 2+m+n] cs:job:t:id:run of each job
-- KEYS[3+m+n…] cs:job:t:id:meta, :spec, :errors and cs:uniq:t:ns:q:key of those that need them
-- ARGV[1] m  ARGV[2] n  ARGV[3] now_ms
-- ARGV[4…] for each job: id, run expected, run to be, place of the set to leave, place of
--   the set to enter, score there, rank of its priority if that set is a pending one
--   else -1, a field to write ('' none), its value, place of its meta or 0, place of its
--   errors or 0, an error's record or '' (its text up to the first comma names the attempt),
--   place of its unique key to be let go or 0, spec to be ('' unchanged), place of its spec
--   or 0, '1' if what follows is to be done
-- Reply: for each job 'ok' | 'gone' | its run, where that is another than expected
local m, n = tonumber(ARGV[1]), tonumber(ARGV[2])
local function arg(i, k) return ARGV[3 + 16 * (i - 1) + k] end
local reply, runs = {}, redis.call('MGET', unpack(KEYS, 3 + m, 2 + m + n))
local cursors
for i = 1, n do
  local id, run, from, to = arg(i, 1), runs[i], tonumber(arg(i, 4)), tonumber(arg(i, 5))
  if not run then
    reply[i] = 'gone'
  elseif run ~= arg(i, 2) and run ~= arg(i, 3) then
    reply[i] = run
  else
    local score, rank = arg(i, 6), tonumber(arg(i, 7))
    if rank >= 0 then
      cursors = cursors or redis.call('HMGET', KEYS[1], '0', '1', '2', '3')
      local cursor = cursors[rank + 1]
      score = cursor and tonumber(cursor) > tonumber(score) and cursor or score
    end
    if to > 0 then
      redis.call('ZADD', KEYS[0 + to], score, id)
    end
    -- A repeat whose marker is gone has been followed up.
    local follows = arg(i, 16) == '1' and string.match(run, '^%a+ %d+ %d+ %d+ %S+ %S+ ')
      and (run ~= arg(i, 3) or redis.call('ZSCORE', KEYS[2], id))
    if follows then
      redis.call('ZADD', KEYS[2], ARGV[3], id)
    end
    local errors, record = tonumber(arg(i, 11)), arg(i, 12)
    if errors > 0 and record ~= '' then
      local last, head = redis.call('LRANGE', KEYS[0 + errors], -1, -1)[1] or '', string.match(record, '^[^,]*,')
      if string.sub(last, 1, #head) ~= head then
        redis.call('RPUSH', KEYS[0 + errors], record)
        redis.call('LTRIM', KEYS[0 + errors], -100, -1)
      end
    end
    if arg(i, 8) ~= '' then
      redis.call('HSET', KEYS[0 + arg(i, 10)], arg(i, 8), arg(i, 9))
    end
    if arg(i, 14) ~= '' then
      redis.call('MSET', KEYS[2 + m + i], arg(i, 3), KEYS[0 + arg(i, 15)], arg(i, 14))
    elseif run ~= arg(i, 3) then
      redis.call('SET', KEYS[2 + m + i], arg(i, 3))
    end
    if from > 0 and from ~= to then
      redis.call('ZREM', KEYS[0 + from], id)
    end
    local unique = tonumber(arg(i, 13))
    if unique > 0 and redis.call('GET', KEYS[0 + unique]) == id then
      redis.call('DEL', KEYS[0 + unique])
    end
    reply[i] = follows and 'after' or 'ok'
  end
end
return reply
