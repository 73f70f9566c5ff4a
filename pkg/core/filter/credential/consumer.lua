-- The tables first, blocks and claims are above: see consumerScript.
local gmatch, type = string.gmatch, type

-- lookup finds the consumer with a credential. blocks are texts until they are needed: reading all of them would stop
-- each worker for long at each change of one consumer.
local function lookup(id)
  local low, high = 1, #first
  while low < high do
    local mid = low + high + 1
    mid = (mid - mid % 2) / 2
    if id < first[mid] then high = mid - 1 else low = mid end
  end
  local block = blocks[low]
  if type(block) == "string" then
    local read = {}
    for credential, name, groups in gmatch(block, "([^\1]*)\1([^\1]*)\1([^\n]*)\n") do
      read[credential] = {name = name, groups = groups}
    end
    blocks[low], block = read, read
  end
  return block and block[id]
end

local several = {}

-- with returns who a request is from, with one more of its credentials.
local function with(is, id)
  local one = lookup(id)
  if not one or is == several then return is end
  if is and is.name ~= one.name then return several end
  return one
end

local function ofClaims(is, payload)
  local issuer = payload.iss
  for _, claim in ipairs(type(issuer) == "string" and claims[issuer] or {}) do
    local value = payload
    for i = 1, #claim do
      value = type(value) == "table" and value[claim[i]] or nil
    end
    if type(value) == "string" then
      is = with(is, "token\2" .. issuer .. "\2" .. claim.name .. "\2" .. value)
    end
  end
  return is
end

-- Each service trusts other authorities. Only a service that verifies certificates gets connections with those that it
-- trusts.
local function ofCertificate(is, h)
  local tls = h:streamInfo():downstreamSslConnection()
  if not tls or not tls:peerCertificateValidated() or not h:virtualHost():metadata():get("certificates") then return is end
  is = with(is, "subject\2" .. tls:subjectPeerCertificate())
  for _, uri in ipairs(tls:uriSanPeerCertificate()) do is = with(is, "uri\2" .. uri) end
  for _, name in ipairs(tls:dnsSansPeerCertificate()) do is = with(is, "dns\2" .. name) end
  return is
end

function envoy_on_request(h)
  local found = h:streamInfo():dynamicMetadata()
  local is
  local key = found:get("envoy.filters.http.basic_auth/key") or found:get("envoy.filters.http.basic_auth/any_key")
  if key then is = with(is, "key\2" .. key.username) end
  if users then
    local user = found:get("envoy.filters.http.basic_auth") or found:get("envoy.filters.http.basic_auth/any")
    if user then
      local filter = h:route():metadata():get("users") or h:virtualHost():metadata():get("users")
      is = with(is, "user\2" .. filter .. "/" .. user.username)
    end
  end
  if next(claims) then
    local token = found:get("envoy.filters.http.jwt_authn")
    if token and token.id_token then is = ofClaims(is, token.id_token) end
  end
  if certificates then is = ofCertificate(is, h) end
  if is == several then
    found:set("envoy.filters.http.lua/consumer", "none", "several")
  elseif is then
    found:set("envoy.filters.http.lua/consumer", "name", is.name)
    if is.groups ~= "" then found:set("envoy.filters.http.lua/consumer", "groups", is.groups) end
  else
    found:set("envoy.filters.http.lua/consumer", "none", "unknown")
  end
end
