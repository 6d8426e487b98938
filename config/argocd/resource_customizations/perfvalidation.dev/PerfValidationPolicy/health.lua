local status = obj.status or {}

if status.observedGeneration ~= obj.metadata.generation then
  return {status = "Progressing", message = "waiting for the operator"}
end

for _, condition in ipairs(status.conditions or {}) do
  if condition.type == "Ready" then
    if condition.reason == "Suspended" then
      return {status = "Suspended", message = condition.message}
    end
    -- Unknown: the operator cannot read the nodes now and tries again.
    local health = {True = "Healthy", False = "Degraded"}
    return {status = health[condition.status] or "Progressing", message = condition.message}
  end
end

return {status = "Progressing", message = "waiting for the operator"}
