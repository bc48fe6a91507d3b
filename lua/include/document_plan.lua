-- What the steps of document_write change, collected before anything is written. The
-- lists are arguments of commands; those of a sorted set hold scores and keys in turns.
-- For a put that changes the expiry of "a" from 5000 to 9000, and a delete of "b":
--   records = {'a', '{"revision":2,…}'}  emptied = {'b', ''}  removed = {'b'}
--   later = {'9000', 'a'}  feed = {{'put', 'a', '2'}, {'delete', 'b', '1'}}
local plan = {
  records = {},  -- key, record: to be stored
  emptied = {},  -- key, '': to be emptied by the same command that stores the others
  removed = {},  -- keys whose records and entries are removed after that
  index = {},    -- entries of new documents
  sooner = {},   -- entries in expiry that must be there before the record is
  later = {},    -- entries in expiry that must not change before the record does
  forever = {},  -- keys that leave expiry
  soonest = nil, -- when the first of sooner expires
  feed = {},     -- {operation, key, revision}
  added = {0, 0, 0, 0}, -- records and bytes; those of them that a recount has passed
}

-- count_change adds to the counts; recounted is the key that a recount has reached, or false.
local function count_change(key, records, bytes, recounted)
  local added = plan.added
  added[1] = added[1] + records
  added[2] = added[2] + bytes
  if recounted and at_or_before(key, recounted) then
    added[3] = added[3] + records
    added[4] = added[4] + bytes
  end
end

-- plan_put stores a record; held_expires_at_ms is nil if none is stored under its key.
local function plan_put(key, record, revision, expires_at_ms, held_expires_at_ms)
  append(plan.records, key, record)
  plan.feed[#plan.feed + 1] = {'put', key, revision}
  if not held_expires_at_ms then
    append(plan.index, '0', key)
  end
  local had_expiry = held_expires_at_ms and held_expires_at_ms ~= '0'
  if had_expiry and expires_at_ms == '0' then
    append(plan.forever, key)
  elseif had_expiry and tonumber(held_expires_at_ms) <= tonumber(expires_at_ms) then
    append(plan.later, expires_at_ms, key)
  elseif expires_at_ms ~= '0' then
    append(plan.sooner, expires_at_ms, key)
    plan.soonest = math.min(plan.soonest or tonumber(expires_at_ms), tonumber(expires_at_ms))
  end
end

-- plan_removal removes a document; revision is nil if only its entries are left.
local function plan_removal(key, revision, operation)
  append(plan.removed, key)
  if revision then
    append(plan.emptied, key, '')
    plan.feed[#plan.feed + 1] = {operation, key, revision}
  end
end

-- plan_expiry sets right the entry in expiry of a document that expires later or never.
local function plan_expiry(key, expires_at_ms)
  if expires_at_ms == '0' then
    append(plan.forever, key)
  else
    append(plan.later, expires_at_ms, key)
  end
end
