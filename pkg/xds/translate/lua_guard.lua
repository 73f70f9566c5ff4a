-- What a script of a user runs in. It may read and change the request and its answer, and call
-- clusters; not the machine, and not for long.
jit.off() -- the hook does not run in compiled code
local load, sethook, getmetatable = loadstring, debug.sethook, debug.getmetatable
local find = string.find
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
-- There is one hook for all requests: who waits comes back without it. Behind bodyChunks nothing could
-- be refused any more.
local known = {}
local function prepare(h)
  local methods = getmetatable(h).__index
  if known[methods] then return end
  known[methods] = true
  methods.bodyChunks = nil
  local function back(...) arm() return ... end
  for _, name in ipairs({"body", "httpCall"}) do
    local wait = methods[name]
    methods[name] = function(...) sethook() return back(wait(...)) end
  end
end
local script, message = load("@SCRIPT@", "=script")
if script then
  setfenv(script, env)
  local ok, err = guarded(script)
  if not ok then script, message = nil, err end
end
function envoy_on_request(h)
  prepare(h)
  local ok, err = script ~= nil, message
  if ok and env.envoy_on_request then ok, err = guarded(env.envoy_on_request, h) end
  if not ok then
    h:logWarn("script: " .. tostring(err))
    h:respond({[":status"] = "503"}, "the script of this route has failed\n")
  end
end
function envoy_on_response(h)
  if not (script and env.envoy_on_response) then return end
  prepare(h)
  local ok, err = guarded(env.envoy_on_response, h)
  if not ok then h:logWarn("script: " .. tostring(err)) end
end
