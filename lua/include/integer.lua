-- integer returns a number as a decimal string; tostring would round it to 14 digits.
local function integer(number)
  return string.format('%.0f', number)
end
