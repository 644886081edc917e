// max_pool2d, avg_pool2d and global_avg_pool2d: each channel of each image by itself.
#pragma once

#include <vector>

#include "terms.h"
#include "window.h"

namespace timetrial::reference {

// Calls row(x, y, count) for every row of every plane that a tap of the window reaches, taps in row-major
// order: y + i meets x + i * window.step().
template <class Each>
void for_each_pooled_row(const Window& window, const Tensor& x, const Tensor& y, Each&& row) {
    const std::size_t in_plane = x.extent(2) * x.extent(3), out_plane = y.extent(2) * y.extent(3);
    for (std::size_t plane = 0; plane < x.extent(0) * x.extent(1); ++plane) {
        slide(window, x, y, [&](std::size_t, const Reach& reach) {
            row(plane * in_plane + reach.x, plane * out_plane + reach.y, reach.count);
        });
    }
}

// y = the largest value in the window; padding never wins. As a sum it has one term: the winner's value,
// once.
class MaxPool2d final : public Sum<MaxPool2d> {
  public:
    explicit MaxPool2d(const Attributes& attributes) : window_(attributes) {}

    void take_ties(const Ties& ties) override { ties_all_ = ties.all; }

    template <class Terms>
    void define(Terms terms, std::span<Tensor* const> inputs, Tensor& y) const {
        Tensor& x = *inputs[0];
        const std::vector<std::size_t> winner = winners(x, y);
        for (std::size_t i = 0; i < y.size(); ++i) terms.value({y, i, 1}, {x, winner[i], 1}, 1);
        if constexpr (Terms::goes_back) {
            if (ties_all_) add_equals(terms, winner, x, y);
        }
    }

  private:
    // The values beside the winner that are as large.
    template <class Terms>
    void add_equals(Terms terms, const std::vector<std::size_t>& winner, Tensor& x, Tensor& y) const {
        for_each_pooled_row(window_, x, y, [&](std::size_t in, std::size_t out, std::size_t count) {
            for (std::size_t i = 0; i < count; ++i) {
                const std::size_t rival = in + i * window_.step(), best = winner[out + i];
                if (rival != best && x.value[rival] == x.value[best])
                    terms.value({y, out + i, 1}, {x, rival, 1}, 1);
            }
        });
    }

    // For each output, the input that it comes from.
    std::vector<std::size_t> winners(const Tensor& x, const Tensor& y) const {
        constexpr std::size_t nobody = static_cast<std::size_t>(-1);
        std::vector<std::size_t> winner(y.size(), nobody);
        for_each_pooled_row(window_, x, y, [&](std::size_t in, std::size_t out, std::size_t count) {
            for (std::size_t i = 0; i < count; ++i) {
                const std::size_t candidate = in + i * window_.step();
                std::size_t& best = winner[out + i];
                if (best == nobody || x.value[candidate] > x.value[best]) best = candidate;
            }
        });
        return winner;
    }

    const Window window_;
    bool ties_all_ = false;
};

// y = sum over the window / (kernel_h * kernel_w); padded zeros count.
class AvgPool2d final : public Sum<AvgPool2d> {
  public:
    explicit AvgPool2d(const Attributes& attributes) : window_(attributes) {}

    template <class Terms>
    void define(Terms terms, std::span<Tensor* const> inputs, Tensor& y) const {
        Tensor& x = *inputs[0];
        const double share = 1 / static_cast<double>(window_.taps());
        for_each_pooled_row(window_, x, y, [&](std::size_t in, std::size_t out, std::size_t count) {
            terms.value({y, out, 1}, {x, in, window_.step()}, count, share);
        });
    }

  private:
    const Window window_;
};

// y = sum over the image / (height * width)
class GlobalAvgPool2d final : public Sum<GlobalAvgPool2d> {
  public:
    template <class Terms>
    void define(Terms terms, std::span<Tensor* const> inputs, Tensor& y) const {
        Tensor& x = *inputs[0];
        const std::size_t plane = x.extent(2) * x.extent(3);
        for (std::size_t i = 0; i < y.size(); ++i)
            terms.value({y, i, 0}, {x, i * plane, 1}, plane, 1 / static_cast<double>(plane));
    }
};

}  // namespace timetrial::reference
