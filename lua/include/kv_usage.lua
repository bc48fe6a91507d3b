-- The counts of the keys of cs.kv. The hash of a tenant has the fields k and b, and for each
-- namespace :k and :b, keys and bytes; while a recount is under way :w, the key that it has
-- reached, and :wk and :wb, those that it has counted so far. A key is counted while it has a
-- size. A script raises the counts before it stores and lowers them afterwards, by one HSET.

-- kv_counts reads the counts of a tenant and a namespace.
local function kv_counts(usage_key, namespace)
  return redis.call('HMGET', usage_key, 'k', 'b', namespace .. ':k', namespace .. ':b', namespace .. ':w', namespace .. ':wk', namespace .. ':wb')
end

-- kv_change returns the fields and values by which keys and bytes are added; counted_keys and
-- counted_bytes are the part that a recount has passed.
local function kv_change(counts, namespace, keys, bytes, counted_keys, counted_bytes)
  local function sum(position, added)
    return integer(math.max(0, tonumber(counts[position] or 0) + added))
  end
  local changes = {'k', sum(1, keys), 'b', sum(2, bytes), namespace .. ':k', sum(3, keys), namespace .. ':b', sum(4, bytes)}
  if counts[5] then
    append(changes, namespace .. ':wk', sum(6, counted_keys))
    append(changes, namespace .. ':wb', sum(7, counted_bytes))
  end
  return changes
end

-- kv_passed reports whether a recount has passed a key.
local function kv_passed(counts, key)
  return counts[5] and at_or_before(key, counts[5])
end
