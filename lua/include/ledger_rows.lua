-- add_rows adds the rows of a call, and its part of the sums of budgets, to the sums of a day.
local function add_rows(ledger, mark, ttl, most)
  local fields = {'n'}
  for i = ledger.rows, #ARGV, 9 do
    append(fields, ARGV[i], ARGV[i + 1])
  end
  local values = redis.call('HMGET', ledger.day_key, unpack(fields))
  local count = tonumber(values[1] or '0')
  local sums = {}
  for i = 2, #fields do
    sums[fields[i]] = sums[fields[i]] or values[i]
  end
  local written = {}
  for i = ledger.rows, #ARGV, 9 do
    local field = ARGV[i]
    if not sums[field] and count >= tonumber(most) then
      field = ARGV[i + 1]
    end
    if not sums[field] then
      count = count + 1
    end
    local words = {}
    local argument = i + 2
    for word in string.gmatch(sums[field] or '0 0 0 0 0 0 0', '%d+') do
      words[#words + 1] = integer(math.min(tonumber(word) + tonumber(ARGV[argument]), 9007199254740991))
      argument = argument + 1
    end
    sums[field] = table.concat(words, ' ')
    written[field] = true
  end
  local changes = {'n', integer(count), ledger.mark_field, mark}
  for field in pairs(written) do
    append(changes, field, sums[field])
  end
  for _, budget in ipairs(ledger.budgets) do
    if budget.field ~= '' then
      append(changes, budget.field, budget.sum)
    end
  end
  redis.call('HSET', ledger.day_key, unpack(changes))
  if redis.call('PTTL', ledger.day_key) < 0 then
    redis.call('PEXPIRE', ledger.day_key, ttl)
  end
end
