if obj.metadata.annotations ~= nil then
  obj.metadata.annotations["perfvalidation.dev/no-cleanup"] = nil
end
return obj
