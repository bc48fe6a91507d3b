-- add_error appends the record of an attempt to the errors of a job, which keeps the last hundred.
-- An attempt that did not fail has one too, but for the one that completes the job. The
-- text up to the first comma names the attempt: a record of the same attempt as the last
-- one is a repeat and changes nothing. errors_key may be nil for none.
local function add_error(errors_key, record)
  if not errors_key then
    return
  end
  local attempt = string.match(record, '^[^,]*,')
  local last = redis.call('LRANGE', errors_key, -1, -1)[1] or ''
  if string.sub(last, 1, #attempt) ~= attempt then
    redis.call('RPUSH', errors_key, record)
    redis.call('LTRIM', errors_key, -100, -1)
  end
end
