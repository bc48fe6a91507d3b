-- The counts of the documents that a namespace and its tenant store. The usage hash of
-- an install has these fields for each namespace, that of a tenant has r, b, wr, wb and w:
--   :r records  :b bytes, those of the schema included
--   :wr and :wb those that a recount has counted so far
--   :w the key (of a tenant, the install) that the recount has reached  :c changes so far
-- A count is never below the stored records and bytes: a script raises counts before it
-- changes records and lowers them afterwards.

-- namespace_count_fields returns the fields of a namespace in the order r, b, wr, wb, c, w.
local function namespace_count_fields(namespace)
  return {namespace .. ':r', namespace .. ':b', namespace .. ':wr', namespace .. ':wb', namespace .. ':c', namespace .. ':w'}
end
local tenant_count_fields = {'r', 'b', 'wr', 'wb', 'w'}

-- exceeded_quota returns the reply {'quota', scope, unit, limit, used} for the first
-- quota that the change would exceed, else nil. limits has records and bytes of the
-- namespace, then of the tenant, '0' for none. Only a count that grows is checked.
local function exceeded_quota(limits, counts, tenant_counts, records, bytes)
  local used = {counts[1], counts[2], tenant_counts[1], tenant_counts[2]}
  local change = {records, bytes, records, bytes}
  local scope = {'namespace', 'namespace', 'tenant', 'tenant'}
  local unit = {'records', 'bytes', 'records', 'bytes'}
  for i = 1, 4 do
    local before = tonumber(used[i] or 0)
    if change[i] > 0 and limits[i] ~= '0' and before + change[i] > tonumber(limits[i]) then
      return {'quota', scope[i], unit[i], limits[i], integer(before)}
    end
  end
  return nil
end

-- change_counts adds to the given fields those changes that have the given sign: 1
-- for the ones that raise a count, -1 for the ones that lower it.
local function change_counts(key, fields, counts, changes, sign)
  local written = {}
  for i, change in ipairs(changes) do
    if change * sign > 0 then
      append(written, fields[i], integer(math.max(0, tonumber(counts[i] or 0) + change)))
    end
  end
  if #written > 0 then
    redis.call('HSET', key, unpack(written))
  end
end

-- tenant_changes returns the changes of a tenant's counts by a change in one of its
-- installs, which a recount of the tenant may have passed.
local function tenant_changes(install, tenant_counts, records, bytes)
  local reached = tenant_counts[5]
  if reached and at_or_before(install, reached) then
    return {records, bytes, records, bytes}
  end
  return {records, bytes}
end
