-- Notes which lists have the client. The lines of the lists come before this.

-- Returns the digits of an address as IPv4 and as IPv6, each nil if it has no such form.
local function forms(text)
  local a, b, c, d = text:match("^(%d+)%.(%d+)%.(%d+)%.(%d+):%d+$")
  if a then
    return ("%02x%02x%02x%02x"):format(tonumber(a), tonumber(b), tonumber(c), tonumber(d))
  end
  local host = text:match("^%[([%x:%.]+)%]:%d+$")
  if not host then return end
  local head
  head, a, b, c, d = host:match("^(.*:)(%d+)%.(%d+)%.(%d+)%.(%d+)$")
  if head then
    host = ("%s%02x%02x:%02x%02x"):format(head, tonumber(a), tonumber(b), tonumber(c), tonumber(d))
  end
  local function groups(part)
    local list = {}
    for group in part:gmatch("%x+") do list[#list + 1] = ("%04x"):format(tonumber(group, 16)) end
    return list
  end
  local first, last = host:match("^(.-)::(.*)$")
  local left, right = groups(first or host), groups(last or "")
  local missing = 8 - #left - #right
  if missing < 0 or not first and missing > 0 then return end
  local all = table.concat(left) .. ("0000"):rep(missing) .. table.concat(right)
  if #all ~= 32 then return end
  -- A proxy in front that listens on IPv6 writes an IPv4 address like this.
  return all:match("^00000000000000000000ffff(%x+)$"), all
end

-- Reports whether one of the ranges, which are sorted and disjoint, has the address.
local function within(ranges, address)
  if not address then return false end
  local width = #address
  local low, high = 0, #ranges / (2 * width)
  while low < high do
    local middle = math.floor((low + high) / 2)
    local at = middle * 2 * width
    if address < ranges:sub(at + 1, at + width) then high = middle
    elseif address > ranges:sub(at + width + 1, at + 2 * width) then low = middle + 1
    else return true end
  end
  return false
end

function envoy_on_request(h)
  local info = h:streamInfo()
  local v4, v6 = forms(info:downstreamRemoteAddress())
  if not v4 and not v6 then return end
  local notes = info:dynamicMetadata()
  for name in h:filterContext():get("lists"):gmatch("%S+") do
    local list = lists[name]
    if list then
      notes:set("gatehouse.addresses", name, (within(list[1], v4) or within(list[2], v6)) and "in" or "out")
    end
  end
end
