-- Ends an activation, by compare-and-set on its status and lease.
-- KEYS[1] cs:act:t:id:meta
-- KEYS[2] cs:events:t
-- KEYS[3] cs:act:t:id:result    (only where the result has a key of its own)
-- ARGV[1] the terminal record, whole
-- ARGV[2] the epoch of the lease that ends it, 0 for none
-- ARGV[3] time-to-live in ms
-- ARGV[4] its event, '' for none
-- ARGV[5] the result            (only with KEYS[3])
-- Reply: 1 ended, now or by an earlier try of the same write
--        | the stored record, which another writer has ended or taken over
--        | CS_ACTIVATION_NOT_FOUND
-- The event comes first: an end without its event would never be seen.
-- include activations.lua
-- include changes.lua
local record_key, events_key, result_key = unpack(KEYS)
local record, epoch, ttl, change, result = unpack(ARGV)

local held = redis.call('GET', record_key)
if not held then
  return redis.error_reply('CS_ACTIVATION_NOT_FOUND no such activation')
end
if held == record then
  return 1
end
local activation = unfinished(held)
if not activation or epoch_of(activation) ~= tonumber(epoch) then
  return held
end
if change ~= '' then
  note_change(change)
  write_changes(events_key)
end
if result_key then
  redis.call('SET', result_key, result, 'PX', ttl)
end
redis.call('SET', record_key, record, 'PX', ttl)
return 1
