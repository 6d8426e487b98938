local annotations = obj.metadata.annotations or {}
local suspended = obj.spec.suspend == true
local deleting = obj.metadata.deletionTimestamp ~= nil
local kept = annotations["perfvalidation.dev/no-cleanup"] == "true"

local actions = {}
actions["rerun"] = {
  ["disabled"] = deleting or suspended,
  ["displayName"] = "Run again",
  ["iconClass"] = "fa fa-fw fa-redo"
}
actions["suspend"] = {
  ["disabled"] = deleting or suspended,
  ["displayName"] = "Suspend: stop, and free the GPUs",
  ["iconClass"] = "fa fa-fw fa-pause"
}
actions["resume"] = {
  ["disabled"] = deleting or not suspended,
  ["displayName"] = "Resume",
  ["iconClass"] = "fa fa-fw fa-play"
}
actions["clean-up"] = {
  ["disabled"] = not kept,
  ["displayName"] = "Clean up what was kept",
  ["iconClass"] = "fa fa-fw fa-trash"
}
return actions
