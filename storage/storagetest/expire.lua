-- Lets the keys of a script that have less than a minute to live expire before its
-- EXPIRE_BEFORE-th command: on KVRocks the clock runs on.
local running, calls = redis, 0
local redis = {
  error_reply = running.error_reply, status_reply = running.status_reply, sha1hex = running.sha1hex,
  call = function(...)
    calls = calls + 1
    if calls == EXPIRE_BEFORE then
      for _, key in ipairs(KEYS) do
        local ttl = running.call('PTTL', key)
        if ttl >= 0 and ttl < 60000 then
          running.call('DEL', key)
          expired[key] = true
        end
      end
    end
    return running.call(...)
  end,
}
