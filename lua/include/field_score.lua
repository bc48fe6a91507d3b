-- field_score returns the score of a record in an index, as a decimal string: the
-- field's value if that is an integer of 64 bits, else a score above all of these.
local function field_score(value)
  local sign, digits = string.match(value, '^(%-?)0*(%d+)$')
  local most = sign == '-' and '9223372036854775808' or '9223372036854775807'
  if not digits or #digits > #most or (#digits == #most and digits > most) then
    return '10000000000000000000'
  end
  return sign .. digits
end

-- number returns a score as a number. On the embedded store tonumber does not read
-- 1e+19, as ZSCORE writes the last of the scores above; arithmetic does.
local function number(score)
  return score + 0
end
