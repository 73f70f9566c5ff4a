-- Replaces answers that have a page. The pages are data: in the filter context of a host or route.
local noted = "gatehouse.errorpage"
-- What describes the body that is replaced (RFC 9110 section 8, RFC 9530).
local stale = {
  "content-length", "transfer-encoding", "trailer", "content-type", "content-encoding", "content-language",
  "content-location", "content-range", "content-disposition", "content-md5", "content-digest", "repr-digest", "digest",
  "etag", "last-modified", "accept-ranges",
}
local types = {html = "text/html; charset=utf-8", json = "application/json", text = "text/plain; charset=utf-8"}

-- A response does not show the request, so what counts of the client is noted before any filter answers.
function envoy_on_request(h)
  local headers = h:headers()
  local accept = headers:get("accept") or ""
  local form = "text"
  if accept:find("text/html", 1, true) then form = "html"
  elseif accept:find("application/json", 1, true) or accept:find("application/problem+json", 1, true) then form = "json"
  end
  if headers:get(":method") == "HEAD" then form = "HEAD " .. form end
  h:streamInfo():dynamicMetadata():set(noted, "form", form)
end

function envoy_on_response(h)
  local headers = h:headers()
  local status = headers:get(":status")
  if status < "400" then return end
  local pages = h:filterContext()
  local page = pages:get(status)
  local note = h:streamInfo():dynamicMetadata():get(noted)
  -- Without a note, the connection manager has refused the request before it passed any filter.
  if not page or not note then return end
  local form = tostring(note.form)
  local head = form:sub(1, 5) == "HEAD "
  if head then form = form:sub(6) end
  form = pages:get(page .. " " .. form) or pages:get(page .. " text")
  for _, name in ipairs(stale) do headers:remove(name) end
  headers:replace("content-type", types[form])
  status = pages:get(page .. " status") or status
  headers:replace(":status", status)
  if pages:get(page .. " vary") then headers:add("vary", "Accept") end
  if head then return end
  local body = pages:get(page .. ":" .. form):gsub("{status}", status)
  -- The page takes the place of the first piece. The others arrive, as long as the upstream sends them, and go nowhere.
  local sent = false
  for piece in h:bodyChunks() do
    piece:setBytes(sent and "" or body)
    sent = true
  end
  local trailers = h:trailers()
  if not trailers then
    if not sent then h:body(true):setBytes(body) end -- there was no body at all
    return
  end
  -- Behind trailers there is no place for a body: Envoy 1.39 ends with a segmentation fault in body().
  local names = {}
  for name in pairs(trailers) do names[#names + 1] = name end
  for _, name in ipairs(names) do trailers:remove(name) end
end
