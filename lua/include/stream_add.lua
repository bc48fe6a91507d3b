-- stream_id returns an id for a new entry of a stream: the time, or the id behind the last
-- entry if that is not below. Clocks of replicas differ, and ids must increase.
local function stream_id(stream_key, at_ms)
  local last = redis.call('XREVRANGE', stream_key, '+', '-', 'COUNT', 1)[1]
  if last then
    local ms, sequence = string.match(last[1], '^(%d+)-(%d+)$')
    if tonumber(ms) >= tonumber(at_ms) then
      return ms .. '-' .. string.format('%.0f', sequence + 1)
    end
  end
  return at_ms .. '-0'
end

-- stream_add appends an entry with one field to a stream that has at most length entries
-- and expires ttl ms after the last of them.
local function stream_add(stream_key, length, ttl, at_ms, field, value)
  redis.call('XADD', stream_key, 'MAXLEN', length, stream_id(stream_key, at_ms), field, value)
  redis.call('PEXPIRE', stream_key, ttl)
end
