-- Makes redis-server answer a script as KVRocks does. GETRANGE of a missing key is
-- nil. PTTL of a key that is not there may be a time, since a hash whose last field was
-- removed keeps its own; PEXPIRE replies 0 of it and PERSIST fails. What KVRocks
-- answers otherwise without need is refused.
local server = redis
local function answer(call, command, ...)
  local name, args = string.upper(command), {...}
  if name == 'GETRANGE' or name == 'PTTL' or name == 'PERSIST' then
    if server.call('EXISTS', args[1]) == 0 then
      if name == 'GETRANGE' then return false end
      if name == 'PTTL' then return expired[args[1]] and -2 or 3600000 end
      error('ERR NotFound: the key was expired')
    end
  elseif name == 'PEXPIRE' and args[3] then
    error('STRICT: KVRocks has no options of PEXPIRE')
  elseif name == 'XADD' then
    for _, arg in ipairs(args) do
      if arg == '' or arg == '~' then error('STRICT: XADD with "' .. arg .. '"') end
    end
  end
  return call(command, ...)
end
local redis = {
  error_reply = server.error_reply, status_reply = server.status_reply, sha1hex = server.sha1hex,
  call = function(...) return answer(server.call, ...) end,
  pcall = function(...) return answer(server.pcall, ...) end,
}
