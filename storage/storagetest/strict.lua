-- Fails a script that touches a key which it did not declare, or a command
-- whose keys this table does not know.
local real, declared = redis, {}
for _, key in ipairs(KEYS) do declared[key] = true end
local positions = {
  GET = 1, SET = 1, GETRANGE = 1, STRLEN = 1, ZADD = 1, ZREM = 1, DEL = 'all', EXISTS = 'all', MGET = 'all',
  PEXPIRE = 1, HGET = 1, HSET = 1, HDEL = 1, HLEN = 1, ZREMRANGEBYSCORE = 1, SADD = 1, SREM = 1, ZCARD = 1, ZSCORE = 1, ZRANGEBYSCORE = 1, SISMEMBER = 1,
  HMGET = 1, SCARD = 1, LRANGE = 1, RPUSH = 1, LTRIM = 1, HKEYS = 1, PTTL = 1, PERSIST = 1, TYPE = 1,
  ZRANGEBYLEX = 1, XADD = 1, XTRIM = 1, XLEN = 1, XREVRANGE = 1, MSET = 'odd',
}
local function check(command, ...)
  local at = positions[string.upper(command)]
  if not at then error('STRICT: the keys of ' .. command .. ' are not known') end
  local args = {...}
  for i = 1, type(at) == 'number' and at or #args, at == 'odd' and 2 or 1 do
    if not declared[args[i]] then error('STRICT: ' .. command .. ' touches the undeclared key ' .. tostring(args[i])) end
  end
end
local redis = {
  error_reply = real.error_reply, status_reply = real.status_reply, sha1hex = real.sha1hex,
  call = function(...) check(...) return real.call(...) end,
  pcall = function(...) check(...) return real.pcall(...) end,
}
