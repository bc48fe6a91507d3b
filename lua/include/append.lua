-- append adds one or two values at the end of a list. Scripts collect the arguments
-- of ZADD, MSET and HSET in such lists and pass them by unpack.
local function append(list, first, second)
  local length = #list
  list[length + 1] = first
  if second then
    list[length + 2] = second
  end
end
