-- spec_queue returns how a job's spec begins, "namespace,queue,", or nil. Package queue
-- writes these two first, so that scripts need not decode the rest.
local function spec_queue(spec)
  return string.match(spec or '', '^[^,]*,[^,]*,')
end

-- spec_namespace returns the namespace of a job by its spec, of which the beginning is
-- enough, or nil.
local function spec_namespace(spec)
  return string.match(spec or '', '^{"namespace":"([^"]*)"')
end
