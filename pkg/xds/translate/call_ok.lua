function envoy_on_response(handle)
  if string.find(handle:headers():get(":status"), "^2") then
    handle:headers():replace(":status", "200")
  end
end
