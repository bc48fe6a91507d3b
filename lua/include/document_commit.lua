-- The commands of document_write, each after those on which readers rely.

-- write_feed appends the changes to the feed; last is the number of the one before.
local function write_feed(changes_key, last, length, now_ms)
  for i, change in ipairs(plan.feed) do
    local operation, key, revision = unpack(change)
    local id = integer(last + i) .. '-0'
    redis.call('XADD', changes_key, 'MAXLEN', length, id, 'op', operation, 'key', key, 'rev', revision, 'at', now_ms)
  end
end

-- write_entries writes the entries that must be there before the records.
local function write_entries(index_key, expiry_key, expiring_key, namespace_member)
  if #plan.index > 0 then
    redis.call('ZADD', index_key, unpack(plan.index))
  end
  if plan.soonest then
    redis.call('ZADD', expiring_key, 'LT', integer(plan.soonest), namespace_member)
  end
  if #plan.sooner > 0 then
    redis.call('ZADD', expiry_key, unpack(plan.sooner))
  end
end

-- write_records stores and empties records in one command. A write without puts needs
-- none: its HDEL decides.
local function write_records(records_key)
  if #plan.records == 0 then
    return
  end
  for _, word in ipairs(plan.emptied) do
    append(plan.records, word)
  end
  redis.call('HSET', records_key, unpack(plan.records))
end

-- write_removals removes records and their entries, and puts off what expires later.
local function write_removals(records_key, index_key, expiry_key)
  if #plan.removed > 0 then
    redis.call('HDEL', records_key, unpack(plan.removed))
    redis.call('ZREM', index_key, unpack(plan.removed))
  end
  for _, key in ipairs(plan.removed) do
    append(plan.forever, key)
  end
  if #plan.forever > 0 then
    redis.call('ZREM', expiry_key, unpack(plan.forever))
  end
  if #plan.later > 0 then
    redis.call('ZADD', expiry_key, unpack(plan.later))
  end
end
