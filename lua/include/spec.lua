-- spec_queue returns how a job's spec begins, "namespace,queue,", or nil. Package queue
-- writes these two first, so that scripts need not decode the rest.
local function spec_queue(spec)
  return string.match(spec or '', '^[^,]*,[^,]*,')
end
