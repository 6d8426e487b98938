local function is(status, message)
  return {status = status, message = message}
end

local status = obj.status or {}
local conditions = {}
for _, condition in ipairs(status.conditions or {}) do
  conditions[condition.type] = condition
end
local function is_true(name)
  return conditions[name] ~= nil and conditions[name].status == "True"
end

-- The operator's version cannot read the object, so nothing else in the status is about it as it is now.
local stalled = conditions.Stalled
if stalled ~= nil and stalled.reason == "SpecUnreadable" and stalled.observedGeneration == obj.metadata.generation then
  return is("Degraded", stalled.message)
end

if status.observedGeneration ~= obj.metadata.generation then
  return is("Progressing", "waiting for the operator")
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

local verdict = status.verdict
local good = verdict == "Passed" or verdict == "Skipped"
local cleaned = conditions.CleanedUp

-- The time for removal passed, so GPUs may still be taken, and a model server that follows would wait for them.
if not deleted and cleaned ~= nil and cleaned.status == "False" and cleaned.reason == "TeardownUnconfirmed" then
  if verdict ~= nil and not good then
    return is("Degraded", verdict .. ": " .. message .. "; not cleaned up: " .. cleaned.message)
  end
  return is("Degraded", (verdict or "no verdict") .. ", not cleaned up: " .. cleaned.message)
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

  -- Complete is true once the run is over, has measured and judged what this very spec asks for, and its GPUs are back.
  if not is_true("Complete") then
    -- Reconciling has the reason of what blocks the operator. Stalled follows after ten minutes, or at once if the
    -- operator does not try again.
    local reconciling = conditions.Reconciling
    if is_true("Stalled") and reconciling ~= nil then
      return is("Degraded", reconciling.message)
    end
    if is_true("Reconciling") and reconciling.reason ~= "Running" then
      return is("Progressing", reconciling.message)
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

-- What was kept for a post-mortem holds its GPUs.
if not deleted and good and cleaned ~= nil and cleaned.status == "False" then
  return is("Suspended", verdict .. ", " .. cleaned.message)
end
if deleted and verdict == nil then
  return is("Degraded", "deleted before there was a verdict")
end
if verdict ~= "Passed" then
  message = (verdict or "no verdict") .. ": " .. message
end
if is_true("Ready") or (deleted and good) then
  return is("Healthy", message)
end
return is("Degraded", message)
