-- alias_version returns the version of a stored alias, 0 for none.
local function alias_version(record)
  return record and cjson.decode(record).version or 0
end

-- note_alias notes the event of an alias that is set to a version, unless its stored record has
-- that version.
local function note_alias(text, held, version)
  local before = alias_version(held)
  if before ~= tonumber(version) then
    note_change(text, before > 0 and '"previous_version":' .. string.format('%.0f', before))
  end
end
