-- Deletes a batch, and its entry in the list of its namespace. Its jobs stay.
-- KEYS[1] cs:batch:t:id:meta
-- KEYS[2] …:jobs
-- KEYS[3] …:succeeded
-- KEYS[4] …:failed
-- KEYS[5] cs:batches:t:ns
-- KEYS[6] cs:batches:t:ns:ends
-- ARGV[1] id
-- ARGV[2] the time of its last change, if it is deleted only while it is open and has not
--   changed since; '' to delete it in any case
-- Reply: 1 deleted | 0 it does not exist, or has changed
-- One command removes all keys of the batch, so that no part of it remains.
local batch_key, jobs_key, succeeded_key, failed_key, list_key, ends_key = unpack(KEYS)
local id, unchanged_since = unpack(ARGV)

local sealed, changed = unpack(redis.call('HMGET', batch_key, 'sealed', 'changed_ms'))
if not sealed or unchanged_since ~= '' and (sealed ~= '0' or changed ~= unchanged_since) then
  return 0
end
redis.call('DEL', batch_key, jobs_key, succeeded_key, failed_key)
redis.call('ZREM', list_key, id)
redis.call('ZREM', ends_key, id)
return 1
