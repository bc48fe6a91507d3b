-- unfinished returns the decoded record of an activation which has not ended, else
-- nil. A record that cannot be decoded has ended: only a terminal record holds a
-- result, and only a result can be nested too deeply for cjson.
local function unfinished(record)
  local decoded, activation = pcall(cjson.decode, record)
  if decoded and (activation.status == 'running' or activation.status == 'queued') then
    return activation
  end
  return nil
end

-- epoch_of returns the epoch of the lease under which the record was written, 0 for none.
local function epoch_of(activation)
  return activation.lease_epoch or 0
end
