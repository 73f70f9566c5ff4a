-- The headers that a server may receive.
local allowed = {@HEADERS@}

function envoy_on_request(handle)
  local gone = {}
  for name in pairs(handle:headers()) do
    if string.byte(name) ~= 58 and not allowed[name] then -- a colon begins the method, the path and the host
      gone[#gone + 1] = name
    end
  end
  for _, name in ipairs(gone) do
    handle:headers():remove(name)
  end
end
