-- Leases pending jobs of one queue to a worker, each only if its run equals the one that
-- the fetch read before: every change of a job changes its run. A job that is pending
-- with another run ends the claim, so that no job is served before it.
-- KEYS[1] cs:queue:t:ns:q:config
-- KEYS[2] …:cursor
-- KEYS[3] …:rate
-- KEYS[4] …:active
-- KEYS[5 to 8] the pending jobs by the rank of their priority, from 0:
--   …:pending:critical, …:pending:high, …:pending, …:pending:low
-- KEYS[9] cs:events:t
-- KEYS[10 to 9+n] cs:job:t:id:run of each candidate, by rank, then by score
-- ARGV[1] now in ms
-- ARGV[2] when the leases end, in ms
-- ARGV[3] how many jobs at most
-- ARGV[4] n
-- ARGV[5 to 8] the score of each rank's last candidate
-- ARGV[9] ns/q
-- ARGV[10…] groups of candidates of one rank and one run: their rank from 1; how many they
--   are; the run as it was read, or ''; the run under the lease, or '' for those that
--   are not pending in this queue and leave the index; the detail of their event; then
--   their ids
-- Reply: {'ok'|'paused'|'full'|'limited', ms until another call may succeed (limited
--   only), how many jobs the limits allowed, the four cursors or '', the positions of
--   the claimed candidates, from 1}. Without candidates the cursors are left out.
-- include run.lua
-- include rate_window.lua
-- include claim_limits.lua
-- include event_log.lua
local config_key, cursor_key, rate_key, active_key = unpack(KEYS, 1, 4)
local events_key = KEYS[9]
local now, lease_end, limit, count = unpack(ARGV, 1, 4)
local last_scores = {unpack(ARGV, 5, 8)}
local pending_keys = {unpack(KEYS, 5, 8)}
local queue = ARGV[9]
local n = tonumber(count)

local refusal, retry_ms, room, window, all_events = claim_limits(config_key, active_key, rate_key, tonumber(now), tonumber(limit))
if refusal then
  return {refusal, retry_ms, 0}
end
if n == 0 then
  return {'ok', '0', room}
end
local reply = {'ok', '0', room, '', '', '', ''}
local claimed = 0
local leases = {}   -- entries: score, id
local new_runs = {} -- key, run
local leaving = {{}, {}, {}, {}} -- ids that leave the pending jobs of each rank
local reached = {}  -- by rank, the score up to which the candidates were decided
local runs = redis.call('MGET', unpack(KEYS, 10, 9 + n))
local candidate = 0
local first = 10
while candidate < n do
  local rank, size, read, leased, detail = unpack(ARGV, first, first + 4)
  rank = tonumber(rank)
  local ids = leaving[rank]
  local last = first + 4 + tonumber(size)
  for argument = first + 5, last do
    candidate = candidate + 1
    if claimed < room then
      local id = ARGV[argument]
      local run = runs[candidate] or ''
      reached[rank] = last_scores[rank]
      if run == read then
        ids[#ids + 1] = id
        if leased ~= '' then
          claimed = claimed + 1
          leases[2 * claimed - 1], leases[2 * claimed] = lease_end, id
          new_runs[2 * claimed - 1], new_runs[2 * claimed] = KEYS[9 + candidate], leased
          reply[7 + claimed] = candidate
          if all_events then
            note_event('job.started', id, detail)
          end
        end
      elseif parse_run(run) == 'pending' then
        room = claimed
      end
    end
  end
  first = last + 1
end
write_events(events_key, 'all', queue, now)
if claimed > 0 then
  redis.call('ZADD', active_key, unpack(leases))
  redis.call('MSET', unpack(new_runs))
end
for rank = 1, 4 do
  if #leaving[rank] > 0 then
    redis.call('ZREM', pending_keys[rank], unpack(leaving[rank]))
  end
end
if window and claimed > 0 then
  count_claims(window.tenths, window.current, claimed, tonumber(now))
  redis.call('HSET', rate_key, 'tenths', format_window(window.tenths))
end
local cursors = advance_cursors(cursor_key, pending_keys, reached)
for rank = 1, 4 do
  reply[3 + rank] = cursors[rank] or ''
end
return reply
