-- contains reports whether a list has a value.
local function contains(list, value)
  for _, element in ipairs(list) do
    if element == value then
      return true
    end
  end
  return false
end

-- has_fields reports whether a record has the fields and values of the pairs and none of
-- the absent fields.
local function has_fields(record_key, pairs_expected, absent)
  for i = 1, #pairs_expected, 2 do
    if redis.call('HGET', record_key, pairs_expected[i]) ~= pairs_expected[i + 1] then
      return false
    end
  end
  for _, field in ipairs(absent) do
    if redis.call('HGET', record_key, field) then
      return false
    end
  end
  return true
end

-- other_fields returns the fields of a record that are not set by the pairs, and all
-- those that are removed in any case.
local function other_fields(record_key, pairs_set, removed)
  local known = {}
  for i = 1, #pairs_set, 2 do
    known[pairs_set[i]] = true
  end
  local others = {}
  for _, field in ipairs(removed) do
    known[field] = true
    others[#others + 1] = field
  end
  for _, field in ipairs(redis.call('HKEYS', record_key)) do
    if not known[field] then
      others[#others + 1] = field
    end
  end
  return others
end

-- value_after returns the value that a field of a record has after the write, false or
-- nil for none.
local function value_after(record_key, field, pairs_set, removed, replace)
  for i = 1, #pairs_set, 2 do
    if pairs_set[i] == field then
      return pairs_set[i + 1]
    end
  end
  if replace or contains(removed, field) then
    return nil
  end
  return redis.call('HGET', record_key, field)
end
