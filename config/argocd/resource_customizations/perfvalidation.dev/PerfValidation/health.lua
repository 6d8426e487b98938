local function is(status, message)
  return {status = status, message = message}
end

local status = obj.status
if status == nil or status.observedGeneration ~= obj.metadata.generation then
  return is("Progressing", "waiting for the operator")
end

local conditions = {}
for _, condition in ipairs(status.conditions or {}) do
  conditions[condition.type] = condition
end
local function is_true(name)
  return conditions[name] ~= nil and conditions[name].status == "True"
end

local phase = status.phase or "Pending"
local message = status.message or ""

-- Argo CD asks about an object that is being deleted only if it is a hook. A hook that deletes itself
-- (ttlSecondsAfterFinished) is held by Argo CD's finalizer until its result was read: once the operator has let go of it,
-- its verdict is the result.
local deleted = obj.metadata.deletionTimestamp ~= nil
for _, finalizer in ipairs(obj.metadata.finalizers or {}) do
  if finalizer == "perfvalidation.dev/cleanup" then
    deleted = false
  end
end

if not deleted then
  -- An annotation does not change the generation: a rerun that was only just asked for shows nowhere else.
  local asked = (obj.metadata.annotations or {})["perfvalidation.dev/rerun"]
  if asked ~= nil and (status.run == nil or status.run.rerunToken ~= asked) then
    if obj.spec.suspend == true then
      return is("Suspended", "spec.suspend holds the rerun back")
    end
    return is("Progressing", "a rerun was asked for")
  end

  -- Complete is true once the run is over and has measured and judged what this very spec asks for.
  if not is_true("Complete") then
    if is_true("Blocked") then
      return is("Progressing", phase .. ", blocked: " .. conditions.Blocked.message)
    end
    if phase == "Suspended" then
      return is("Suspended", message)
    end
    if phase == "Completed" and conditions.Complete ~= nil then
      return is("Suspended", conditions.Complete.message)
    end
    return is("Progressing", phase .. ": " .. message)
  end
end

local verdict = status.verdict
if deleted and verdict == nil then
  return is("Degraded", "deleted before there was a verdict")
end
if verdict ~= "Passed" then
  message = (verdict or "no verdict") .. ": " .. message
end
if is_true("Ready") or (deleted and (verdict == "Passed" or verdict == "Skipped")) then
  return is("Healthy", message)
end
return is("Degraded", message)
