-- Takes an asynchronous activation into an attempt (running), or back into its
-- queue after one (queued), by compare-and-set on its status and attempt. One
-- whose record is not there, since its making was cut short or it waited for
-- longer than records live, gets it.
-- KEYS[1] cs:act:t:id:meta
-- KEYS[2] cs:act:t:ns:fn:index
-- ARGV[1] the record, whole
-- ARGV[2] the latest attempt that it may stand at: the one before, of a begin, else that one
-- ARGV[3] the job that runs it
-- ARGV[4] time-to-live, ms
-- ARGV[5] the activation's id  ARGV[6] its start_ms
-- Reply: 1 it is so, now or by an earlier try of the same write
--        | the stored record, which has ended, is at a later attempt, or is another's
-- The index comes first: an entry without a record is found by the sweeper, a
-- record without an entry by nobody.
local raw = redis.call('GET', KEYS[1])
if raw == ARGV[1] then
  return 1
end
if raw then
  local decoded, held = pcall(cjson.decode, raw)
  if not decoded or (held.status ~= 'running' and held.status ~= 'queued')
    or held.attempt > tonumber(ARGV[2]) or held.job_id ~= ARGV[3] then
    return raw
  end
else
  redis.call('ZADD', KEYS[2], 'NX', ARGV[6], ARGV[5])
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[4])
return 1
