-- The events of resources other than jobs, which write_changes appends to the tenant's log.
-- Package storage/events documents the entries. Each comes as text, which the type Change of
-- package api/event makes: type, time in ms, subject without its last part, that part, detail.
local changes = {}       -- in the order of their first event
local change_groups = {} -- by type and subject
local changes_kept = 100000       -- entries of a log
local changes_ttl = 86460000      -- of a log after its last change, in ms
local changes_retention = 86400000 -- of an entry, in ms

-- note_change notes a change. more are further members of its detail, nil or '' for none.
local function note_change(text, more)
  local event_type, at, of, id, detail = string.match(text, '^(%S+) (%d+) (%S+) (%S+) (.*)$')
  if more and more ~= '' then
    detail = '{' .. more .. (detail == '{}' and '}' or ',' .. string.sub(detail, 2))
  end
  local key = event_type .. ' ' .. of
  local group = change_groups[key]
  if not group then
    group = {event_type = event_type, of = of, at = at, ids = {}, details = {}}
    change_groups[key] = group
    changes[#changes + 1] = group
  end
  group.ids[#group.ids + 1] = id
  group.details[#group.details + 1] = detail
end

-- append_changes appends the noted changes, forgets them, and returns the id of the last entry,
-- nil for none. A script calls it before it makes the changes: KVRocks may die between two
-- commands, and a change without its event would never be seen.
local function append_changes(events_key)
  local last
  for _, group in ipairs(changes) do
    last = redis.call('XADD', events_key, 'MAXLEN', changes_kept, '*', 'type', group.event_type, 'of', group.of, 'at', group.at,
      'ids', table.concat(group.ids, ' '), 'details', table.concat(group.details, '\n'))
  end
  changes, change_groups = {}, {}
  return last
end

-- bound_changes lets the log, whose last entry is given, expire, and removes its old entries.
local function bound_changes(events_key, last)
  if last then
    redis.call('PEXPIRE', events_key, changes_ttl)
    redis.call('XTRIM', events_key, 'MINID', string.format('%.0f', math.max(0, string.match(last, '^%d+') - changes_retention)))
  end
end

-- write_changes appends the noted changes and bounds the log.
local function write_changes(events_key)
  bound_changes(events_key, append_changes(events_key))
end
