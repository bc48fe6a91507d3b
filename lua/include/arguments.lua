-- For scripts with groups of arguments of varying size: ARGV is read in its order.
local arguments_read = 0

-- take returns the next argument.
local function take()
  arguments_read = arguments_read + 1
  return ARGV[arguments_read]
end

-- take_list returns a list of the next count arguments.
local function take_list(count)
  local list = {}
  for i = 1, count do
    list[i] = take()
  end
  return list
end
