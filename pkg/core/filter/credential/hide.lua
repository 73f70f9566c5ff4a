-- Removes credentials from the query and the cookies, and changes nothing else of them. The names are data: in the
-- metadata of a host and of a route, under the name of this filter. Those of a route replace those of its host, for
-- each kind of credential.
local function names(h, kinds)
  local ofHost, ofRoute, found = h:virtualHost():metadata(), h:route():metadata(), {}
  for _, kind in ipairs(kinds) do
    for name in (ofRoute:get(kind) or ofHost:get(kind) or ""):gmatch("[^ ]+") do found[name] = true end
  end
  return found
end

local function decoded(text)
  return (text:gsub("%%(%x%x)", function(code) return string.char(tonumber(code, 16)) end))
end

-- Returns the parts that are not hidden, and whether one is.
local function kept(text, separator, nameOf, hidden)
  local list, found = {}, false
  for part in (text .. separator):gmatch("([^" .. separator .. "]*)" .. separator) do
    if hidden[nameOf(part)] then found = true else list[#list + 1] = part end
  end
  return list, found
end

-- No pattern here repeats two things that may match the same: a long name would then take very long.
local function parameter(pair) return decoded(pair:match("^[^=]*")) end
local function cookie(pair) return (pair:match("^[^=]*"):gsub("[ \t]", "")) end

function envoy_on_request(h)
  local headers = h:headers()
  local path = headers:get(":path")
  local start = path and path:find("?", 1, true)
  if start then
    local list, found = kept(path:sub(start + 1), "&", parameter, names(h, {"key_query", "token_query"}))
    if found then
      path = path:sub(1, start - 1)
      headers:replace(":path", #list > 0 and path .. "?" .. table.concat(list, "&") or path)
    end
  end
  local cookies = {}
  for i = 0, headers:getNumValues("cookie") - 1 do cookies[#cookies + 1] = headers:getAtIndex("cookie", i) end
  if #cookies == 0 then return end
  local list, found = kept(table.concat(cookies, ";"), ";", cookie, names(h, {"key_cookie", "token_cookie"}))
  if not found then return end
  headers:remove("cookie")
  local rest = table.concat(list, ";"):gsub("^[ ;]+", "")
  if rest ~= "" then headers:add("cookie", rest) end
end
