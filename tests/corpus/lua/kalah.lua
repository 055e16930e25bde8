-- A small player of the Manchester protocol, which the Lua bots of the corpus require.
local kalah = { opening_hole = 4 }

-- Returns a hole with an extra turn if there is one, else the fullest hole; own ends with our store.
function kalah.best_hole(own)
  local pits, best = #own - 1, nil
  for i = 1, pits do
    if own[i] > 0 and i - 1 + own[i] == pits then return i end
    if own[i] > 0 and (not best or own[i] > own[best]) then best = i end
  end
  return best
end

local function send(line)
  io.write(line, "\n")
  io.flush()
end

function kalah.play(choose)
  local seat, may_swap = "", false
  for line in io.lines() do
    if line == "END" then break end
    local started = line:match("^START;(%a+)$")
    local move, state, turn = line:match("^CHANGE;(%w+);([%d,]+);(%u+)$")
    if started then
      seat, may_swap = started, started == "North"
      if not may_swap then send("MOVE;" .. kalah.opening_hole) end
    elseif move then
      if move == "SWAP" then seat = "North" end
      if turn == "YOU" and may_swap and tonumber(move) % 2 == 1 then
        seat, may_swap = "South", false
        send("SWAP")
      elseif turn == "YOU" then
        local board = {}
        for number in state:gmatch("%d+") do board[#board + 1] = math.tointeger(tonumber(number)) end
        local north = table.move(board, 1, #board // 2, 1, {})
        local south = table.move(board, #board // 2 + 1, #board, 1, {})
        may_swap = false
        send("MOVE;" .. choose(seat == "North" and north or south, seat == "North" and south or north))
      end
    end
  end
end

return kalah
