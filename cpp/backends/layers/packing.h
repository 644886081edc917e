// Samples of unequal length, one behind the other in time: sorted by length, the longest first, the first
// `active(t)` of them take part in step t. What they have at that step are so many rows; the rows of all
// steps stand behind each other, and nothing is computed of a step that does not count. Where all shall go as
// far as one another (`cut`), what is behind an end is computed and not shown.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "layers/layer.h"
#include "timetrial/directions.hpp"

namespace timetrial::layers {

// Of one thread's samples. After prepare() nothing is allocated.
template <typename T>
class Packing {
  public:
    void prepare(int64_t samples, int64_t steps) {
        steps_ = steps;
        order_.resize(static_cast<std::size_t>(samples));
        length_.resize(order_.size());
        first_.resize(static_cast<std::size_t>(steps) + 1);
        place_.resize(first_.size() + 1);
    }

    // `lengths` null: all are full. `cut`: how many steps of each are computed; 0: as many as count.
    void arrange(Share samples, const T* lengths, int64_t cut = 0) {
        const int64_t count = samples.end - samples.begin;
        std::fill(place_.begin(), place_.end(), 0);
        const auto length_of = [&](int64_t n) { return lengths ? static_cast<int64_t>(lengths[n]) : steps_; };
        const auto computed_of = [&](int64_t n) {
            return lengths && cut > 0 ? std::min(cut, steps_) : length_of(n);
        };
        for (int64_t n = samples.begin; n < samples.end; ++n) {
            if (lengths) checked_length(lengths[n], n, steps_);
            ++at(place_, computed_of(n));
        }
        // By length downwards: how many are longer, and so in front.
        int64_t longer = 0;
        for (int64_t length = steps_; length >= 0; --length) {
            const int64_t alike = at(place_, length);
            at(place_, length) = longer;
            longer += alike;
        }
        at(first_, 0) = 0;  // active(t) are the samples longer than t
        for (int64_t t = 0; t < steps_; ++t) at(first_, t + 1) = at(first_, t) + at(place_, t);
        for (int64_t n = samples.begin; n < samples.end; ++n) {
            const int64_t place = at(place_, computed_of(n))++;
            at(order_, place) = n;
            at(length_, place) = length_of(n);
        }
        samples_ = count;
        computed_ = count == 0 ? 0 : computed_of(sample(0));
    }

    int64_t samples() const { return samples_; }
    int64_t rows() const { return at(first_, steps_); }
    int64_t first(int64_t step) const { return at(first_, step); }  // row
    int64_t active(int64_t step) const { return step < steps_ ? first(step + 1) - first(step) : 0; }
    int64_t sample(int64_t place) const { return at(order_, place); }
    int64_t length(int64_t place) const { return at(length_, place); }  // steps that count
    // Of the sample that goes furthest.
    int64_t steps() const { return computed_; }

    // Rows of `width` numbers from a sequence of the batch, and back to it; in reverse those of step 0 are of
    // each sample's last one that counts.
    void gather(const T* sequence, T* rows, int64_t width, TimeDirection direction) const {
        for_each_row(direction, [&](int64_t row, int64_t n, int64_t t) {
            std::copy_n(sequence + (n * steps_ + t) * width, width, rows + row * width);
        });
    }
    // Where nothing counts there are zeros, or what was there if the rows are added.
    void scatter(const T* rows, T* sequence, int64_t width, TimeDirection direction, bool add) const {
        for_each_row(direction, [&](int64_t row, int64_t n, int64_t t) {
            const T* from = rows + row * width;
            T* to = sequence + (n * steps_ + t) * width;
            if (!add) return std::copy_n(from, width, to), void();
            for (int64_t i = 0; i < width; ++i) to[i] += from[i];
        });
        if (!add) clear_rest(sequence, width);
    }
    // Zeros at the steps that do not count.
    void clear_rest(T* sequence, int64_t width) const {
        for (int64_t r = 0; r < samples_; ++r)
            std::fill(sequence + (sample(r) * steps_ + length(r)) * width,
                      sequence + (sample(r) + 1) * steps_ * width, T(0));
    }

  private:
    template <typename F>
    void for_each_row(TimeDirection direction, F&& f) const {
        for (int64_t t = 0; t < steps(); ++t)
            for (int64_t r = 0; r < active(t); ++r)
                f(first(t) + r, sample(r), place_of_step(direction, t, length(r)));
    }

    static int64_t& at(std::vector<int64_t>& of, int64_t i) { return of[static_cast<std::size_t>(i)]; }
    static int64_t at(const std::vector<int64_t>& of, int64_t i) { return of[static_cast<std::size_t>(i)]; }

    int64_t steps_ = 0, samples_ = 0, computed_ = 0;
    std::vector<int64_t> order_, length_;  // of the samples, those that go furthest first
    std::vector<int64_t> first_;           // row of each step
    std::vector<int64_t> place_;
};

}  // namespace timetrial::layers
