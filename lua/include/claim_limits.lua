-- claim_limits applies the configuration of a queue to a claim of at most limit jobs. It
-- returns a refusal ('paused', 'full' or 'limited') and, of the last, the ms until
-- another call may succeed; or nil, nil, how many jobs may be claimed, if the queue has a
-- rate limit its window, {tenths, current}, and whether it records all events.
local function claim_limits(config_key, active_key, rate_key, now, limit)
  local config = redis.call('HMGET', config_key, 'paused', 'max_concurrency', 'rate_limit', 'rate_window_ms', 'events')
  local paused = config[1] == '1'
  local max_concurrency = tonumber(config[2] or '0')
  local rate_limit = tonumber(config[3] or '0')
  local window_ms = tonumber(config[4] or '0')
  local all_events = config[5] == 'all'
  if paused then
    return 'paused', '0'
  end
  local room = limit
  if max_concurrency > 0 then
    room = math.min(room, max_concurrency - redis.call('ZCARD', active_key))
    if room <= 0 then
      return 'full', '0'
    end
  end
  if rate_limit <= 0 then
    return nil, nil, room, nil, all_events
  end
  local tenth_ms = math.max(1, math.floor(window_ms / 10))
  local current = math.floor(now / tenth_ms)
  local tenths, used, next_end = read_window(redis.call('HGET', rate_key, 'tenths'), now, window_ms, tenth_ms)
  room = math.min(room, rate_limit - used)
  if room <= 0 then
    return 'limited', string.format('%.0f', next_end - now)
  end
  return nil, nil, room, {tenths = tenths, current = current}, all_events
end

-- advance_cursors moves the cursors of the ranks in reached, {rank = score}, and returns
-- all four. A cursor becomes the score of the first job that remains pending at its
-- rank, or else the score in reached: no pending job has a lower one. It never goes back.
local function advance_cursors(cursor_key, pending_keys, reached)
  local cursors = redis.call('HMGET', cursor_key, '0', '1', '2', '3')
  for rank = 1, 4 do
    if reached[rank] then
      local from = cursors[rank] or '-inf'
      local to = string.format('(%.0f', rank * 2 ^ 51)
      local remaining = redis.call('ZRANGEBYSCORE', pending_keys[rank], from, to, 'WITHSCORES', 'LIMIT', 0, 1)
      local score = math.max(tonumber(cursors[rank] or '0'), tonumber(remaining[2] or reached[rank]))
      cursors[rank] = string.format('%.0f', score)
      redis.call('HSET', cursor_key, tostring(rank - 1), cursors[rank])
    end
  end
  return cursors
end
