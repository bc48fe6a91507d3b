-- queue_refusal returns the error of an enqueue to a queue that is draining, or nil.
local function queue_refusal(config_key, refuse_draining)
  if refuse_draining == '1' and redis.call('HGET', config_key, 'draining') == '1' then
    return 'CS_QUEUE_DRAINING_CONFLICT the queue is draining and accepts no new jobs'
  end
  return nil
end

-- batch_refusal returns the error of an enqueue to a batch that is missing or sealed, or
-- nil. batch_key is nil without a batch. If namespace is not '', batches of others count as
-- missing.
local function batch_refusal(batch_key, namespace)
  if not batch_key then
    return nil
  end
  local fields = redis.call('HMGET', batch_key, 'sealed', 'namespace')
  local sealed = fields[1]
  if not sealed or namespace ~= '' and fields[2] ~= namespace then
    return 'CS_BATCH_NOT_FOUND no such batch'
  end
  if sealed ~= '0' then
    return 'CS_BATCH_SEALED_CONFLICT the batch is sealed'
  end
  return nil
end

-- parse_conditions reads what few jobs have, five words: expire_at_ms or 0; the number
-- of its unique key in KEYS or 0; that key's time-to-live in ms; the id of a
-- holder of that key that has ended or -; the id of one that lives or -. It returns
-- expire_at '0' and nils for a job without conditions.
local function parse_conditions(conditions)
  if conditions == '' then
    return '0'
  end
  local expire_at, unique, unique_ttl, ended, living = string.match(conditions, '^(%S+) (%S+) (%S+) (%S+) (%S+)$')
  return expire_at, KEYS[tonumber(unique)], unique_ttl, ended, living
end
