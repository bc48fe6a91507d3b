-- Sets an asynchronous activation running at an attempt, or queued again after it, by
-- compare-and-set on its status and lease. A missing record is created: its creation was
-- interrupted, or its job waited for longer than records live.
-- KEYS[1] cs:act:t:id:meta
-- KEYS[2] cs:act:t:ns:fn:index
-- KEYS[3] cs:events:t
-- ARGV[1] the record, whole
-- ARGV[2] the latest lease epoch that the stored record may have: the previous one where an
--         attempt begins, else the same one
-- ARGV[3] the job that runs the activation
-- ARGV[4] time-to-live in ms
-- ARGV[5] the activation's id
-- ARGV[6] its start_ms
-- ARGV[7] the event that it begins, '' for none
-- Reply: 1 written, now or by an earlier try of the same write
--        | the stored record, which has ended, is of a later lease, or has another job
-- The index comes first: the sweeper finds an entry without a record, but never a
-- record without an entry.
-- include activations.lua
-- include changes.lua
local record_key, index_key, events_key = unpack(KEYS)
local record, latest_epoch, job_id, ttl, id, start_ms, change = unpack(ARGV)

local held = redis.call('GET', record_key)
if held == record then
  return 1
end
if held then
  local activation = unfinished(held)
  if not activation or epoch_of(activation) > tonumber(latest_epoch) or activation.job_id ~= job_id then
    return held
  end
else
  redis.call('ZADD', index_key, 'NX', start_ms, id)
end
if change ~= '' then
  note_change(change)
  write_changes(events_key)
end
redis.call('SET', record_key, record, 'PX', ttl)
return 1
