-- A job's run is its changing part, stored as one string of six words and, where
-- something follows the job's end, a seventh:
--   state attempt epoch at settled worker [follows]
-- The Go type run, in or below package queue, documents the words and writes the same
-- string. The words stay strings here; at is a time in milliseconds.

-- parse_run returns the words of a run, follows being '' where there is none. It
-- returns nil if there is no run.
local function parse_run(run)
  return string.match(run or '', '^(%a+) (%d+) (%d+) (%d+) (%S+) (%S+) ?(.*)$')
end

-- format_run returns the run that parse_run returns the words of.
local function format_run(state, attempt, epoch, at, settled, worker, follows)
  local run = state .. ' ' .. attempt .. ' ' .. epoch .. ' ' .. at .. ' ' .. settled .. ' ' .. worker
  if follows == '' then
    return run
  end
  return run .. ' ' .. follows
end

-- followed reports whether something follows the end of the job with that run.
local function followed(run)
  local follows = select(7, parse_run(run))
  return follows ~= nil and follows ~= ''
end
