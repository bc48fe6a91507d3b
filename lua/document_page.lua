-- Reads documents of one namespace by their keys, all at one moment.
-- KEYS[1] cs:doc:t:i:ns:records  KEYS[2] :index
-- ARGV[1] from  ARGV[2] to, both as ZRANGEBYLEX has them  ARGV[3] how many
-- ARGV[4] '1' with their values, else without
-- Reply: {key, record, …}; a record is '' where there is none
-- A record that is cut behind its metadata, whose length its head has, stays JSON.
local keys, reply = redis.call('ZRANGEBYLEX', KEYS[2], ARGV[1], ARGV[2], 'LIMIT', 0, ARGV[3]), {}
local records = #keys > 0 and redis.call('HMGET', KEYS[1], unpack(keys))
for i, key in ipairs(keys) do
  local record = records[i] or ''
  local before, size = string.match(record, '^({"revision":[^{]*,"metadata_bytes":(%d+),"metadata":)')
  if before and ARGV[4] ~= '1' then
    record = string.sub(record, 1, #before + tonumber(size)) .. '}'
  end
  reply[2 * i - 1], reply[2 * i] = key, record
end
return reply
