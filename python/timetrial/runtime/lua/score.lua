-- Accuracy and loss of predictions over a test set, in double precision.

local Score = {}
Score.__index = Score

function Score.new(loss_kind)
  return setmetatable({ samples = 0, _squared = loss_kind == "squared_error", _right = 0, _loss = 0 }, Score)
end

-- The first of equal predictions is the answer; a row with a NaN counts as wrong.
local function answer(row, classes)
  local best = 0
  for class = 0, classes - 1 do
    if row[class] ~= row[class] then
      return nil
    elseif row[class] > row[best] then
      best = class
    end
  end
  return best
end

local function squared_error(row, classes, label)
  local sum = 0
  for class = 0, classes - 1 do
    local error = row[class] - (class == label and 1 or 0)
    sum = sum + error * error
  end
  return sum / classes
end

local function cross_entropy(row, classes, label)
  local top, sum = -math.huge, 0
  for class = 0, classes - 1 do
    top = math.max(top, row[class])
  end
  for class = 0, classes - 1 do
    sum = sum + math.exp(row[class] - top)
  end
  return math.log(sum) + top - row[label]
end

-- The first `count` rows of predictions (float *, n x classes) and their labels (int64_t *).
function Score:add(predictions, labels, count, classes)
  local loss = self._squared and squared_error or cross_entropy
  for i = 0, count - 1 do
    local row, label = predictions + i * classes, tonumber(labels[i])
    self._right = self._right + (answer(row, classes) == label and 1 or 0)
    self._loss = self._loss + loss(row, classes, label)
  end
  self.samples = self.samples + count
end

-- The fields of the event `done`.
function Score:result()
  return { accuracy = self._right / self.samples, loss = self._loss / self.samples, samples = self.samples }
end

return Score
