-- hex returns the bytes of a string as hexadecimal digits.
local function hex(text)
  local function digits(char)
    return string.format('%02x', string.byte(char))
  end
  return (string.gsub(text, '.', digits))
end

-- at_or_before reports whether one string is at or before another byte by byte, as the
-- store sorts them. Lua compares strings by the locale of the server instead.
local function at_or_before(one, other)
  return hex(one) <= hex(other)
end
