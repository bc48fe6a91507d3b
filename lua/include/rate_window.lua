-- The rate limit of a queue counts the jobs claimed in a sliding window. Claims are counted
-- by tenths of its length, whose number is their start divided by their length, and count
-- until the last claim of their tenth has left the window: so no window of any start has
-- more claims than the limit. The counts are stored as text: "tenth:count:last,…", where
-- last is the time in ms of the last claim; older releases wrote "tenth:count,…".

-- read_window returns the counts of a window as {tenth = {count, last}}, their sum, and the
-- time at which the first of them leaves the window. A time far ahead is that of a tenth
-- without one, of a shorter window from before a change of the configuration. It would not
-- leave this window in time, so it does not count.
local function read_window(stored, now, window_ms, tenth_ms)
  local tenths = {}
  local sum = 0
  local next_end
  for tenth, count, last in string.gmatch(stored or '', '(%d+):(%d+):?(%d*)') do
    tenth = tonumber(tenth)
    count = tonumber(count)
    last = tonumber(last) or (tenth + 1) * tenth_ms - 1
    local leaves = last + window_ms
    if leaves > now and last <= now + window_ms then
      tenths[tenth] = {count, last}
      sum = sum + count
      next_end = math.min(next_end or leaves, leaves)
    end
  end
  return tenths, sum, next_end
end

-- count_claims adds claims at now to a window that read_window returned.
local function count_claims(tenths, tenth, claimed, now)
  local before = tenths[tenth] or {0, now}
  tenths[tenth] = {before[1] + claimed, math.max(before[2], now)}
end

-- format_window returns the text that read_window reads.
local function format_window(tenths)
  local words = {}
  for tenth, counted in pairs(tenths) do
    words[#words + 1] = string.format('%.0f:%.0f:%.0f', tenth, counted[1], counted[2])
  end
  return table.concat(words, ',')
end
