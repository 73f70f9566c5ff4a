-- What a script of a user runs in. It may read and change the request and its answer, and call the
-- upstreams that its filter names; not the machine, and not for long.
jit.off() -- the hook does not run in compiled code
local load, sethook, getmetatable = loadstring, debug.sethook, debug.getmetatable
local find, gmatch = string.find, string.gmatch
-- Patterns can take as long as they like, and nothing could end them.
local plain = function(s, p, at) return find(s, p, at, true) end
-- Also those that ("x"):rep() would find.
string.rep, string.dump, string.match, string.gmatch, string.gsub, string.find = nil, nil, nil, nil, nil, plain
local env = {
  string = {format = string.format, sub = string.sub, find = plain, lower = string.lower, upper = string.upper, len = string.len, byte = string.byte, char = string.char},
  math = {floor = math.floor, ceil = math.ceil, max = math.max, min = math.min, random = math.random},
  table = {insert = table.insert, remove = table.remove, concat = table.concat, sort = table.sort},
  os = {time = os.time},
  tostring = tostring, tonumber = tonumber, type = type, pairs = pairs, ipairs = ipairs, next = next, select = select, unpack = unpack, error = error,
}
local function arm() sethook(function() error("the script takes too long", 2) end, "", 1000000) end
local function guarded(f, a)
  local ok, err = pcall(function() arm() f(a) sethook() end)
  sethook()
  return ok, err
end
-- All that a script may use of Envoy's objects. It reads and changes its request and the answer; nothing
-- here leads to another route or endpoint. Behind bodyChunks and trailers nothing could be refused any more.
local allowed = {}
for name in gmatch([[
  headers downstreamRequestHeaders add get getAtIndex getNumValues remove replace setHttp1ReasonPhrase
  body length getBytes setBytes respond httpCall
  logTrace logDebug logInfo logWarn logErr logCritical
  metadata route virtualHost timestamp timestampString base64Escape importPublicKey verifySignature
  streamInfo dynamicMetadata dynamicTypedMetadata set protocol routeName virtualClusterName requestedServerName
  downstreamLocalAddress downstreamDirectLocalAddress downstreamRemoteAddress downstreamDirectRemoteAddress
  downstreamSslConnection drainConnectionUponCompletion connection connectionStreamInfo ssl
  peerCertificatePresented peerCertificateValidated uriSanLocalCertificate sha256PeerCertificateDigest
  serialNumberPeerCertificate issuerPeerCertificate subjectPeerCertificate parsedSubjectPeerCertificate
  commonName organizationName uriSanPeerCertificate subjectLocalCertificate dnsSansPeerCertificate
  dnsSansLocalCertificate oidsPeerCertificate oidsLocalCertificate validFromPeerCertificate
  expirationPeerCertificate sessionId ciphersuiteId ciphersuiteString tlsVersion
  urlEncodedPemEncodedPeerCertificate urlEncodedPemEncodedPeerCertificateChain
]], "%S+") do allowed[name] = true end
-- The clusters of the upstreams that a script may call, by the upstream's name.
local calls = {@CALLS@}
local hide
-- There is one hook for all requests: who waits comes back without it.
local function back(...) arm() return hide(...) end
local waits = {
  body = function(wait) return function(...) sethook() return back(wait(...)) end end,
  httpCall = function(wait)
    return function(h, upstream, ...)
      local cluster = calls[upstream]
      if not cluster then error("upstream " .. tostring(upstream) .. " is not among the upstreams of this filter", 2) end
      sethook()
      return back(wait(h, cluster, ...))
    end
  end,
}
-- Takes the rest away from objects, once for each class. Their metatable keeps what Envoy needs.
local known = {}
function hide(...)
  for i = 1, select("#", ...) do
    local object = select(i, ...)
    local class = type(object) == "userdata" and getmetatable(object)
    if class and not known[class] then
      known[class] = true
      local methods = {}
      for name, f in pairs(class.__index) do
        if allowed[name] then
          methods[name] = waits[name] and waits[name](f) or function(...) return hide(f(...)) end
        end
      end
      class.__index = methods
    end
  end
  return ...
end
local script, message = load("@SCRIPT@", "=script")
if script then
  setfenv(script, env)
  local ok, err = guarded(script)
  if not ok then script, message = nil, err end
end
function envoy_on_request(h)
  hide(h)
  local ok, err = script ~= nil, message
  if ok and env.envoy_on_request then ok, err = guarded(env.envoy_on_request, h) end
  if not ok then
    h:logWarn("script: " .. tostring(err))
    h:respond({[":status"] = "503"}, "the script of this route has failed\n")
  end
end
function envoy_on_response(h)
  if not (script and env.envoy_on_response) then return end
  hide(h)
  local ok, err = guarded(env.envoy_on_response, h)
  if not ok then h:logWarn("script: " .. tostring(err)) end
end
