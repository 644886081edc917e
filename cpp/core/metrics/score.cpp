#include "metrics/score.h"

#include <algorithm>
#include <cmath>

namespace timetrial {
namespace {

// log(sum(exp(p))) - p[label], with the maximum taken out so that exp cannot overflow.
double cross_entropy(const float* row, std::size_t classes, std::size_t label) {
    const double largest = *std::max_element(row, row + classes);
    double sum = 0;
    for (std::size_t c = 0; c < classes; ++c) sum += std::exp(row[c] - largest);
    return std::log(sum) + largest - row[label];
}

double squared_error(const float* row, std::size_t classes, std::size_t label) {
    double sum = 0;
    for (std::size_t c = 0; c < classes; ++c) {
        const double error = row[c] - (c == label ? 1.0 : 0.0);
        sum += error * error;
    }
    return sum / static_cast<double>(classes);
}

}  // namespace

std::int64_t Score::answer(const float* row, std::size_t classes) {
    const bool has_nan = std::any_of(row, row + classes, [](float p) { return std::isnan(p); });
    return has_nan ? -1 : std::max_element(row, row + classes) - row;
}

void Score::add(const float* predictions, const std::int64_t* labels, std::size_t rows) {
    for (std::size_t i = 0; i < rows; ++i) {
        if (labels[i] < 0) continue;
        ++samples_;
        const float* row = predictions + i * classes_;
        const auto label = static_cast<std::size_t>(labels[i]);
        if (answer(row, classes_) == labels[i]) ++right_;
        loss_sum_ += loss_kind_ == LossKind::kSquaredError ? squared_error(row, classes_, label)
                                                           : cross_entropy(row, classes_, label);
    }
}

double Score::accuracy() const { return static_cast<double>(right_) / static_cast<double>(samples_); }

double Score::loss() const { return loss_sum_ / static_cast<double>(samples_); }

}  // namespace timetrial
