-- Reads documents of one namespace in the order of their keys, all at one moment.
-- KEYS[1] cs:doc:t:i:ns:records
-- KEYS[2] …:index
-- ARGV[1] from, as ZRANGEBYLEX takes it
-- ARGV[2] to, the same
-- ARGV[3] how many at most
-- ARGV[4] '1' with the documents' values, else without
-- Reply: {key, record, …}; a record is '' if there is none
local records_key, index_key = unpack(KEYS)
local from, to, limit, values = unpack(ARGV)

-- without_value cuts a record behind its metadata, whose length is in its head. The
-- result is still JSON.
local function without_value(record)
  local head, metadata_bytes = string.match(record, '^({"revision":[^{]*,"metadata_bytes":(%d+),"metadata":)')
  if not head then
    return record
  end
  return string.sub(record, 1, #head + tonumber(metadata_bytes)) .. '}'
end

local keys = redis.call('ZRANGEBYLEX', index_key, from, to, 'LIMIT', 0, limit)
if #keys == 0 then
  return {}
end
local records = redis.call('HMGET', records_key, unpack(keys))
local reply = {}
for i, key in ipairs(keys) do
  local record = records[i] or ''
  if values ~= '1' then
    record = without_value(record)
  end
  reply[2 * i - 1] = key
  reply[2 * i] = record
end
return reply
