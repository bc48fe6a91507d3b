-- Ends a script after its CUT_AFTER-th write, as a crash of KVRocks would: what
-- was written stays.
local real, writes = redis, 0
local reads = {GET = true, HMGET = true, SCARD = true, LRANGE = true, GETRANGE = true, STRLEN = true, EXISTS = true, MGET = true, HGET = true, ZCARD = true, ZSCORE = true, ZRANGEBYSCORE = true, ZRANGEBYLEX = true, HKEYS = true, HLEN = true, PTTL = true, TYPE = true, SISMEMBER = true, XREVRANGE = true, XLEN = true}
local redis = {
  error_reply = real.error_reply, status_reply = real.status_reply, sha1hex = real.sha1hex,
  call = function(command, ...)
    if not reads[string.upper(command)] then
      if writes == CUT_AFTER then error('CUT') end
      writes = writes + 1
    end
    return real.call(command, ...)
  end,
}
