-- Counts a page more of a namespace of documents, and at the end of the walk sets what the
-- namespace and its tenant use right. Writers add to the walk's counts what they change
-- behind it, so that it ends with what there is; only what a cut write has added to
-- them by then is left to the next walk.
-- KEYS[1] cs:doc:t:i:ns:records  KEYS[2] :index  KEYS[3] cs:doc:t:i:usage  KEYS[4] cs:doc:t:usage
-- ARGV[1] namespace  ARGV[2] install  ARGV[3] now in ms  ARGV[4] how many records
-- Reply: {1 at the end, records and bytes that usage had too many, entries of the index that had no record, …keys of what has expired}
local ns, most = ARGV[1], tonumber(ARGV[4])
local function int(n) return string.format('%.0f', n) end
local function hex(s) return (string.gsub(s, '.', function(c) return string.format('%02x', string.byte(c)) end)) end -- as in document_write.lua
local use = redis.call('HMGET', KEYS[3], ns .. ':r', ns .. ':b', ns .. ':wr', ns .. ':wb', ns .. ':w')
local keys = redis.call('ZRANGEBYLEX', KEYS[2], use[5] and '(' .. use[5] or '-', '+', 'LIMIT', 0, most)
local held = #keys > 0 and redis.call('HMGET', KEYS[1], unpack(keys))
local records, bytes, gone, expired = use[5] and tonumber(use[3] or 0) or 0, use[5] and tonumber(use[4] or 0) or 0, {}, {}
for i, key in ipairs(keys) do
  local ends, size = string.match(held[i] or '', '^{"revision":%d+,"created_at_ms":%d+,"expires_at_ms":(%d+),"bytes":(%d+),')
  if (held[i] or '') == '' then
    gone[#gone + 1] = key
  else
    records, bytes = records + 1, bytes + tonumber(size or #held[i])
    if ends and ends ~= '0' and tonumber(ends) <= tonumber(ARGV[3]) then expired[#expired + 1] = key end
  end
end
if #gone > 0 then
  redis.call('HDEL', KEYS[1], unpack(gone))
  redis.call('ZREM', KEYS[2], unpack(gone))
end
if #keys == most then
  redis.call('HSET', KEYS[3], ns .. ':wr', int(records), ns .. ':wb', int(bytes), ns .. ':w', keys[most])
  return {0, 0, 0, #gone, unpack(expired)}
end
local drift = {tonumber(use[1] or 0) - records, tonumber(use[2] or 0) - bytes}
local function tenant(sign) -- is raised before the namespace and lowered after it
  local whole, set = redis.call('HMGET', KEYS[4], 'r', 'b', 'wr', 'wb', 'w'), {}
  for i, name in ipairs({'r', 'b', 'wr', 'wb'}) do
    local change = -drift[2 - i % 2]
    if change * sign > 0 and (i < 3 or whole[5] and hex(ARGV[2]) <= hex(whole[5])) then
      set[#set + 1], set[#set + 2] = name, int(tonumber(whole[i] or 0) + change)
    end
  end
  if #set > 0 then redis.call('HSET', KEYS[4], unpack(set)) end
end
tenant(1)
if drift[1] ~= 0 or drift[2] ~= 0 then redis.call('HSET', KEYS[3], ns .. ':r', int(records), ns .. ':b', int(bytes)) end
if use[5] then redis.call('HDEL', KEYS[3], ns .. ':wr', ns .. ':wb', ns .. ':w') end
tenant(-1)
return {1, drift[1], drift[2], #gone, unpack(expired)}
