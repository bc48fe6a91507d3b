-- The events of a script's jobs, which write_events appends to the tenant's log. Package
-- storage/events documents the entries, api/event the types.
local event_types = {}  -- in the order of their first event
local event_groups = {} -- by type: ids, details, last detail
local event_ttl = 86460000 -- of a new log, in ms: Trim of package storage/events extends it
local event_ends = {['job.completed'] = true, ['job.dead'] = true, ['job.cancelled'] = true}
local event_always = {['approval.requested'] = true, ['approval.decided'] = true}

-- note_event notes an event of a job. detail describes it in JSON. A detail that is that of
-- the event before is left out.
local function note_event(event_type, id, detail)
  local group = event_groups[event_type]
  if not group then
    group = {ids = {}, details = {}}
    event_groups[event_type] = group
    event_types[#event_types + 1] = event_type
  end
  group.ids[#group.ids + 1] = id
  group.details[#group.ids] = detail == group.last and '' or detail
  group.last = detail
end

-- event_detail returns the detail of an event of a job by words of its run (run.lua). The ids
-- of workers have no control characters.
local function event_detail(attempt, worker)
  local id = string.match(worker, '^(.+)@%d+$') or string.match(worker, '^(.+)@%d+/[^@]+$') or worker
  return '{"attempt":' .. attempt .. ',"worker_id":"' .. string.gsub(id, '[\\"]', '\\%0') .. '"}'
end

-- event_mode returns the setting events of a queue, nil if no event is noted.
local function event_mode(config_key)
  return #event_types > 0 and redis.call('HGET', config_key, 'events') or nil
end

-- write_events appends the noted events that the queue, named ns/q, records by its setting
-- events, and forgets them. now is the time of the changes in ms. A script calls it before it
-- makes the changes: KVRocks may die between two commands, and a change without its event would
-- never be seen.
local function write_events(events_key, mode, queue, now)
  for _, event_type in ipairs(event_types) do
    if mode == 'all' or event_always[event_type] or mode ~= 'off' and event_ends[event_type] then
      local group = event_groups[event_type]
      redis.call('XADD', events_key, '*', 'type', event_type, 'queue', queue, 'at', now,
        'ids', table.concat(group.ids, ' '), 'details', table.concat(group.details, '\n'))
      if redis.call('XLEN', events_key) == 1 then
        redis.call('PEXPIRE', events_key, event_ttl)
      end
    end
  end
  event_types, event_groups = {}, {}
end
