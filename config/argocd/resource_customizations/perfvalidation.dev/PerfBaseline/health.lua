local status = obj.status or {}

if status.observedGeneration ~= obj.metadata.generation then
  return {status = "Progressing", message = "waiting for the operator"}
end

for _, condition in ipairs(status.conditions or {}) do
  if condition.type == "Approved" then
    -- A baseline that waits for nodes or for its approval is as it should be. These two need a change in Git.
    if condition.reason == "Duplicate" or condition.reason == "RevisionMissing" then
      return {status = "Degraded", message = condition.message}
    end
    return {status = "Healthy", message = condition.message}
  end
end

return {status = "Progressing", message = "waiting for the operator"}
