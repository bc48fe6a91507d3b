-- The rate limit of a queue counts the jobs claimed in a sliding window. The window
-- moves by tenths of its length; a tenth's number is its start divided by its length.
-- The counts are stored as text: "tenth:count,tenth:count".

-- read_window returns the counts of a window as {tenth = count}, their sum, and the
-- oldest tenth. Tenths far ahead of the current one are those of a shorter window, from
-- before a change of the configuration. They would never leave this one, so they
-- do not count.
local function read_window(stored, current)
  local tenths = {}
  local sum = 0
  local oldest = current
  for tenth, count in string.gmatch(stored or '', '(%d+):(%d+)') do
    tenth = tonumber(tenth)
    count = tonumber(count)
    if tenth > current - 10 and tenth <= current + 10 then
      tenths[tenth] = count
      sum = sum + count
      oldest = math.min(oldest, tenth)
    end
  end
  return tenths, sum, oldest
end

-- format_window returns the text that read_window reads.
local function format_window(tenths)
  local words = {}
  for tenth, count in pairs(tenths) do
    words[#words + 1] = string.format('%.0f:%.0f', tenth, count)
  end
  return table.concat(words, ',')
end
