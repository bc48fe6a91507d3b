-- Takes jobs from one state to another, each if its run still is what the caller
-- read. The indexes are written around that: the new one before it, the old one
-- after it. Of a job's errors the last hundred are kept: one that is continued and
-- fails in turns would fill the store.
-- KEYS[1] cs:queue:t:ns:q:cursor of the queue that jobs go to
-- KEYS[2] …:after of that queue
-- KEYS[3 to 2+m] the sets that jobs leave and enter
-- KEYS[3+m to 2+m+n] cs:job:t:id:meta of each job
-- KEYS[3+m+n…] cs:job:t:id:errors and cs:uniq:t:ns:q:key of those that need them
-- ARGV[1] m  ARGV[2] n  ARGV[3] now_ms
-- ARGV[4…] for each job: id, run expected, run to be, place of the set to leave, place of
--   the set to enter, score there, rank of its priority if that set is a pending one
--   else -1, a field to write ('' none), its value, place of its errors or 0, an error's
--   record or '' (its text up to the first comma names the attempt), place of its unique
--   key to be let go or 0, spec to be ('' unchanged), '1' if something follows
-- Reply: for each job 'ok' | 'gone' | its run, where that is another than expected
local m, n = tonumber(ARGV[1]), tonumber(ARGV[2])
local function arg(i, k) return ARGV[3 + 14 * (i - 1) + k] end
local reply = {}
local cursors
for i = 1, n do
  local id, meta, from, to = arg(i, 1), 2 + m + i, tonumber(arg(i, 4)), tonumber(arg(i, 5))
  local held = redis.call('HMGET', KEYS[0 + meta], 'run', 'after')
  if not held[1] then
    reply[i] = 'gone'
  elseif held[1] ~= arg(i, 2) and held[1] ~= arg(i, 3) then
    reply[i] = held[1]
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
    local follows = held[2] and arg(i, 14) == '1' and (held[1] ~= arg(i, 3) or redis.call('ZSCORE', KEYS[2], id))
    if follows then
      redis.call('ZADD', KEYS[2], ARGV[3], id)
    end
    local errors, record = tonumber(arg(i, 10)), arg(i, 11)
    if errors > 0 and record ~= '' then
      local last, head = redis.call('LRANGE', KEYS[0 + errors], -1, -1)[1] or '', string.match(record, '^[^,]*,')
      if string.sub(last, 1, #head) ~= head then
        redis.call('RPUSH', KEYS[0 + errors], record)
        redis.call('LTRIM', KEYS[0 + errors], -100, -1)
      end
    end
    if held[1] ~= arg(i, 3) or arg(i, 13) ~= '' then
      local set = {'run', arg(i, 3)}
      if arg(i, 8) ~= '' then
        set[3], set[4] = arg(i, 8), arg(i, 9)
      end
      if arg(i, 13) ~= '' then
        set[#set + 1], set[#set + 2] = 'spec', arg(i, 13)
      end
      redis.call('HSET', KEYS[0 + meta], unpack(set))
    end
    if from > 0 and from ~= to then
      redis.call('ZREM', KEYS[0 + from], id)
    end
    local unique = tonumber(arg(i, 12))
    if unique > 0 and redis.call('GET', KEYS[0 + unique]) == id then
      redis.call('DEL', KEYS[0 + unique])
    end
    reply[i] = follows and 'after' or 'ok'
  end
end
return reply
