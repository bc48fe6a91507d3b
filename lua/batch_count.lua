-- Notes in their batch how jobs ended, and says how the batch stands. A job is
-- counted once, whatever is repeated, and belongs to the batch even if its
-- enqueue was cut before it said so.
-- KEYS[1] cs:batch:t:id:meta  KEYS[2] …:jobs  KEYS[3] …:succeeded  KEYS[4] …:failed
-- ARGV[1] 'seal' to seal it, else ''  ARGV[2] how many succeeded  ARGV[3…] their ids, then those that failed
-- Reply: {sealed '0' or '1', total, succeeded, failed} | CS_BATCH_NOT_FOUND
local ttl, sealed = redis.call('PTTL', KEYS[1]), redis.call('HGET', KEYS[1], 'sealed')
if not sealed then
  return redis.error_reply('CS_BATCH_NOT_FOUND no such batch')
end
local n = tonumber(ARGV[2])
if #ARGV > 2 then
  redis.call('SADD', KEYS[2], unpack(ARGV, 3))
end
if n > 0 then
  redis.call('SADD', KEYS[3], unpack(ARGV, 3, 2 + n))
  redis.call('SREM', KEYS[4], unpack(ARGV, 3, 2 + n))
end
if #ARGV > 2 + n then
  redis.call('SADD', KEYS[4], unpack(ARGV, 3 + n))
end
if ARGV[1] == 'seal' and sealed == '0' then
  redis.call('HSET', KEYS[1], 'sealed', '1')
  sealed = '1'
end
-- A batch that is done expires: what was counted in it goes with it, where its keys
-- expired within this script, too.
if ttl >= 0 then
  for i = 2, 4 do redis.call('PEXPIRE', KEYS[0 + i], math.max(ttl, 1)) end
end
return {sealed, redis.call('SCARD', KEYS[2]), redis.call('SCARD', KEYS[3]), redis.call('SCARD', KEYS[4])}
