-- Reads documents of one namespace in the order of their keys, all at one moment.
-- KEYS[1] cs:doc:t:i:ns:records
-- KEYS[2] …:index
-- ARGV[1] from, as ZRANGEBYLEX takes it
-- ARGV[2] to, the same
-- ARGV[3] how many at most
-- ARGV[4] '1' with the documents' values, else without
-- ARGV[5] how many bytes of records: it stops with the record that reaches them
-- Reply: {'1' if it stopped for the bytes, else '', key, record, …}; a record is '' if there is none
local records_key, index_key = unpack(KEYS)
local from, to, limit, values, most = unpack(ARGV)
local most_bytes = tonumber(most)
local window = 32 -- records of one command: some may have 64 KiB

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
local reply = {''}
local bytes = 0
for first = 1, #keys, window do
  local last = math.min(#keys, first + window - 1)
  local records = redis.call('HMGET', records_key, unpack(keys, first, last))
  for i = first, last do
    local record = records[i - first + 1] or ''
    bytes = bytes + #record
    if values ~= '1' then
      record = without_value(record)
    end
    reply[2 * i] = keys[i]
    reply[2 * i + 1] = record
    if bytes >= most_bytes and i < #keys then
      reply[1] = '1'
      return reply
    end
  end
end
return reply
