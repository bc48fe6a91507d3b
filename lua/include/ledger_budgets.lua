-- The budgets of a call with a ledger. What the jobs of a budget have spent in a day of its zone is a
-- field of the sums of the days in UTC: a day of a zone is in two of these at most, so its sum is that
-- of both. A report changes it by the HSET of its rows.
--
-- ARGV has, before the rows of the day: how many budgets follow; with any, the revision of the tenant's
-- budgets as the caller knows them, and the score of the job among those that a budget holds ('' none);
-- then five for each: its field ('' none); what the call adds; the limit, 0 for none; whether the caller
-- takes the limit for reached: '1', '0', or '' for either; the event for when it is reached ('' none).
-- With any, KEYS has at its end: cs:budgets:t; with a score, the set of the jobs that the budget holds.

-- read_budgets returns the budgets of a ledger, and the position of the rows behind them. The ledger is
-- stale if the caller does not know the budgets, or is wrong about a limit.
local function read_budgets(ledger, first, key)
  local count = tonumber(ARGV[first])
  if count == 0 then
    return {}, first + 1
  end
  local revision, score = ARGV[first + 1], ARGV[first + 2]
  local fields, budgets = {}, {score = score, held_key = KEYS[key + 1]}
  for i = 1, count do
    fields[i] = ARGV[first + 5 * i - 2]
  end
  local today = redis.call('HMGET', ledger.day_key, unpack(fields))
  local before = redis.call('HMGET', ledger.before_key, unpack(fields))
  for i = 1, count do
    local field, added, limit, assumed, event = unpack(ARGV, first + 5 * i - 2, first + 5 * i + 2)
    local sum = tonumber(today[i] or '0') + tonumber(before[i] or '0')
    limit = tonumber(limit)
    local reached = limit > 0 and sum + tonumber(added) >= limit
    budgets[i] = {
      field = field, sum = integer(tonumber(today[i] or '0') + tonumber(added)), event = event,
      crossed = field == '' or reached and sum < limit,
    }
    if assumed ~= '' and (assumed == '1') ~= reached then
      budgets.stale = true
    end
  end
  budgets.stale = budgets.stale or (redis.call('HGET', KEYS[key], '#') or '0') ~= revision
  return budgets, first + 3 + 5 * count
end

-- write_crossed appends the events of the limits that a call reaches, and returns which they are.
local function write_crossed(budgets, events_key)
  local crossed = {}
  for i, budget in ipairs(budgets) do
    if budget.crossed then
      crossed[#crossed + 1] = i
      if budget.event ~= '' then
        note_change(budget.event)
      end
    end
  end
  write_changes(events_key)
  return table.concat(crossed, ' ')
end

-- hold_by_budget lists the job among those that a budget holds, if it is to hold it. It precedes the
-- run: an entry of a job that is not held is dropped.
local function hold_by_budget(budgets, id)
  if budgets.score and budgets.score ~= '' then
    redis.call('ZADD', budgets.held_key, budgets.score, id)
  end
end
