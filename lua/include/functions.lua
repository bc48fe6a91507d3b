-- function_exists reports whether the stored record of a function, or false, is that
-- of a function which is not deleted.
local function function_exists(record)
  if not record then
    return false
  end
  local deleted_at_ms = cjson.decode(record).deleted_at_ms
  return not deleted_at_ms or deleted_at_ms == cjson.null
end
