// Accuracy and loss of predictions over a test set.
#pragma once

#include <cstddef>
#include <cstdint>

namespace timetrial {

enum class LossKind { kSoftmaxCrossEntropy, kSquaredError };

// Sums over samples in double precision, so that the order of batches does not matter to the last digit
// that anyone prints.
class Score {
  public:
    Score(LossKind loss, std::size_t classes) : loss_kind_(loss), classes_(classes) {}

    // The first `rows` of `predictions` (rows x classes) against their labels, each in [0, classes), or -1:
    // that row does not count. A row is a sample, or a step of one.
    void add(const float* predictions, const std::int64_t* labels, std::size_t rows);

    std::size_t samples() const { return samples_; }  // rows that count
    // Where the largest of the row (`classes` numbers) lies, the first of equals; -1 if one is NaN.
    static std::int64_t answer(const float* row, std::size_t classes);
    // Share of samples whose largest prediction (the first of equals) is at the label. A row with a NaN
    // counts as wrong.
    double accuracy() const;
    // Mean over the samples: softmax cross-entropy -log softmax(p)[label], or squared error, the mean over
    // classes of (p - onehot(label))^2.
    double loss() const;

  private:
    LossKind loss_kind_;
    std::size_t classes_;
    std::size_t samples_ = 0;
    std::size_t right_ = 0;
    double loss_sum_ = 0;
};

}  // namespace timetrial
