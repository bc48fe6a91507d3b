-- Counts in their batch how jobs ended, and returns the batch's counts. A job is
-- counted once, however often the call is repeated, and is a member of the batch even if
-- its enqueue was interrupted before it was added.
-- KEYS[1] cs:batch:t:id:meta
-- KEYS[2] …:jobs
-- KEYS[3] …:succeeded
-- KEYS[4] …:failed
-- KEYS[5] cs:events:t
-- ARGV[1] 'seal' to seal the batch, else ''
-- ARGV[2] now in ms, the time of the last change while the batch is open
-- ARGV[3] the event of the seal
-- ARGV[4] how many jobs succeeded
-- ARGV[5…] their ids, then the ids of those that failed
-- Reply: {sealed '0' or '1', total, succeeded, failed, finished '0' or '1'} | CS_BATCH_NOT_FOUND
-- A finished batch has its callback and expires: a job of it that is retried and ends again must
-- not make the callback again, whose job may have been purged.
-- include changes.lua
local batch_key, jobs_key, succeeded_key, failed_key, events_key = unpack(KEYS)
local seal, now, seal_event, succeeded = unpack(ARGV, 1, 4)
local first_failed = 5 + tonumber(succeeded)

local ttl = redis.call('PTTL', batch_key)
local sealed = redis.call('HGET', batch_key, 'sealed')
if not sealed then
  return redis.error_reply('CS_BATCH_NOT_FOUND no such batch')
end
if sealed == '0' then
  redis.call('HSET', batch_key, 'changed_ms', now)
end
if #ARGV >= 5 then
  redis.call('SADD', jobs_key, unpack(ARGV, 5))
end
if first_failed > 5 then
  redis.call('SADD', succeeded_key, unpack(ARGV, 5, first_failed - 1))
  redis.call('SREM', failed_key, unpack(ARGV, 5, first_failed - 1))
end
if #ARGV >= first_failed then
  redis.call('SADD', failed_key, unpack(ARGV, first_failed))
end
if seal == 'seal' and sealed == '0' then
  note_change(seal_event)
  write_changes(events_key)
  redis.call('HSET', batch_key, 'sealed', '1')
  sealed = '1'
end
-- A batch that has ended expires. Its sets expire with it, also where they expired
-- during this script and were written again.
if ttl >= 0 then
  local remaining = math.max(ttl, 1)
  redis.call('PEXPIRE', jobs_key, remaining)
  redis.call('PEXPIRE', succeeded_key, remaining)
  redis.call('PEXPIRE', failed_key, remaining)
end
local finished = '0'
if ttl >= 0 and redis.call('HGET', batch_key, 'finished') == '1' then
  finished = '1'
end
return {sealed, redis.call('SCARD', jobs_key), redis.call('SCARD', succeeded_key), redis.call('SCARD', failed_key), finished}
