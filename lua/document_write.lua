-- Writes documents of one namespace, all or none: puts, deletes, checks and expiries.
-- KEYS[1] cs:doc:t:i:ns:records  KEYS[2] :index  KEYS[3] :expiry  KEYS[4] :changes  KEYS[5] :schema
-- KEYS[6] cs:doc:t:i:usage  KEYS[7] cs:doc:t:usage  KEYS[8] cs:doc:t:i:namespaces  KEYS[9] cs:doc:t:expiring
-- ARGV[1] namespace  ARGV[2] install  ARGV[3] now in ms  ARGV[4] digest of the schema that the values
--   keep to, '' none  ARGV[5] changes that the feed keeps  ARGV[6 to 9] quotas, 0 none: records and
--   bytes of the namespace, then of the tenant  ARGV[10…] for each step, of keys that differ: put |
--   delete | check | expire, key, revision that it must have (0: no document, '' any),
--   expires_at_ms, bytes, the record from there on
-- Reply: {'ok', for each step the head of its record, '' where there is none} | {'items', index, code, …}
--   | {'quota', scope, unit, limit, used} | {'register'} the namespace is not | CS_STORE_CONFLICT of another schema
-- Every record is in the index, and in expiry no later than it expires; usage is never below what
-- there is. One HSET decides on all records: it empties those that go while others come.
local head = '^({"revision":(%d+),"created_at_ms":(%d+),"expires_at_ms":(%d+),"bytes":(%d+),"updated_at_ms":%d+,"metadata_bytes":%d+,)'
local ns, install, now, puts = ARGV[1], ARGV[2], tonumber(ARGV[3]), false
local function int(n) return string.format('%.0f', n) end
local function add(list, ...) for _, v in ipairs({...}) do list[#list + 1] = v end end
local function hex(s) return (string.gsub(s, '.', function(c) return string.format('%02x', string.byte(c)) end)) end
local function passed(name, walk) return walk and hex(name) <= hex(walk) end -- as bytes: texts compare by the locale
local reply, failed, keys, feed, set, empty, gone, index, sooner, later, forget, soonest = {'ok'}, {'items'}, {}, {}, {}, {}, {}, {}, {}, {}, {}, nil
for i = 10, #ARGV, 6 do add(keys, ARGV[i + 1]) end
local held = redis.call('HMGET', KEYS[1], unpack(keys))
local names = {ns .. ':r', ns .. ':b', ns .. ':wr', ns .. ':wb', ns .. ':c', ns .. ':w'}
local use, whole = redis.call('HMGET', KEYS[6], unpack(names)), redis.call('HMGET', KEYS[7], 'r', 'b', 'wr', 'wb', 'w')
local delta = {0, 0, 0, 0} -- records and bytes; those that a recount has passed
local function count(key, records, bytes)
  local walked = passed(key, use[6]) and 1 or 0
  delta = {delta[1] + records, delta[2] + bytes, delta[3] + records * walked, delta[4] + bytes * walked}
end
for i, key in ipairs(keys) do
  local at = 10 + 6 * (i - 1)
  local op, must, expires, bytes = ARGV[at], ARGV[at + 2], ARGV[at + 3], ARGV[at + 4]
  local header, revision, created, ends, size = string.match(held[i] or '', head)
  local live = header and (ends == '0' or tonumber(ends) > now)
  local has = live and revision or '0'
  reply[i + 1] = op == 'check' and live and header or ''
  if must ~= '' and must ~= has then
    add(failed, i - 1, op == 'delete' and has == '0' and 'NOT_FOUND' or 'REVISION_MISMATCH')
  elseif op == 'put' then
    revision, puts = int(tonumber(has) + 1), true
    add(set, key, '{"revision":' .. revision .. ',"created_at_ms":' .. (live and created or ARGV[3]) .. ',' .. ARGV[at + 5])
    reply[i + 1] = string.match(set[#set], head)
    add(feed, {'put', key, revision})
    count(key, header and 0 or 1, tonumber(bytes) - tonumber(size or 0))
    if not header then add(index, 0, key) end
    if header and ends ~= '0' and expires == '0' then
      add(forget, key)
    elseif header and ends ~= '0' and tonumber(ends) <= tonumber(expires) then
      add(later, expires, key)
    elseif expires ~= '0' then
      add(sooner, expires, key)
      soonest = math.min(soonest or tonumber(expires), tonumber(expires))
    end
  elseif op == 'delete' or op == 'expire' and not live then
    add(gone, key)
    if header then
      add(empty, key, '')
      add(feed, {live and 'delete' or 'expire', key, revision})
      count(key, -1, -tonumber(size))
    end
  elseif op == 'expire' then -- it was put off
    add(ends == '0' and forget or later, unpack(ends == '0' and {key} or {ends, key}))
  end
end
if #failed > 1 then return failed end
for i, had in ipairs({use[1], use[2], whole[1], whole[2]}) do
  local used, limit, unit = tonumber(had or 0), ARGV[5 + i], 2 - i % 2
  if delta[unit] > 0 and limit ~= '0' and used + delta[unit] > tonumber(limit) then
    return {'quota', i < 3 and 'namespace' or 'tenant', unit == 1 and 'records' or 'bytes', limit, int(used)}
  end
end
if puts and (redis.call('GETRANGE', KEYS[5], 0, 63) or '') ~= ARGV[4] then return redis.error_reply('CS_STORE_CONFLICT the schema is another by now') end
if puts and redis.call('SISMEMBER', KEYS[8], ns) == 0 then return {'register'} end
local function settle(key, fields, had, changes, sign) -- what grows before the records change, what shrinks behind them
  local counts = {}
  for i, change in ipairs(changes) do
    if change * sign > 0 then add(counts, fields[i], int(tonumber(had[i] or 0) + change)) end
  end
  if #counts > 0 then redis.call('HSET', key, unpack(counts)) end
end
local all = passed(install, whole[5]) and {delta[1], delta[2], delta[1], delta[2]} or {delta[1], delta[2]}
settle(KEYS[7], {'r', 'b', 'wr', 'wb'}, whole, all, 1)
settle(KEYS[6], names, use, {delta[1], delta[2], delta[3], delta[4], #feed}, 1)
for i, change in ipairs(feed) do
  redis.call('XADD', KEYS[4], 'MAXLEN', ARGV[5], int(tonumber(use[5] or 0) + i) .. '-0', 'op', change[1], 'key', change[2], 'rev', change[3], 'at', ARGV[3])
end
if #index > 0 then redis.call('ZADD', KEYS[2], unpack(index)) end
if soonest then redis.call('ZADD', KEYS[9], 'LT', int(soonest), install .. '/' .. ns) end
if #sooner > 0 then redis.call('ZADD', KEYS[3], unpack(sooner)) end
if puts then add(set, unpack(empty)) end
if #set > 0 then redis.call('HSET', KEYS[1], unpack(set)) end
if #gone > 0 then redis.call('HDEL', KEYS[1], unpack(gone)) end
if #gone > 0 then redis.call('ZREM', KEYS[2], unpack(gone)) end
add(forget, unpack(gone))
if #forget > 0 then redis.call('ZREM', KEYS[3], unpack(forget)) end
if #later > 0 then redis.call('ZADD', KEYS[3], unpack(later)) end
settle(KEYS[6], names, use, delta, -1)
settle(KEYS[7], {'r', 'b', 'wr', 'wb'}, whole, all, -1)
return reply
